package httpapi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listEvals answers GET /v1/evaluations, in the order of creation; ?job and ?status narrow it.
func listEvals(q *request) error {
	job, status := q.URL.Query().Get("job"), q.URL.Query().Get("status")
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableEvals), body: func() (any, error) {
			return evalPage(q, slices.Collect(listing.Where(s.Evals(), func(e *cluster.Evaluation) bool {
				return q.params.within(e.Namespace) && strings.HasPrefix(string(e.ID), q.params.prefix) &&
					(job == "" || job == string(e.JobID)) && (status == "" || status == string(e.Status))
			})))
		}}
	})
}

// listJobEvals answers GET /v1/job/{id}/evaluations, in the order of creation.
func listJobEvals(q *request) error {
	return q.read(func(s State) found {
		evals := slices.Collect(s.EvalsByJob(q.jobKey()))
		f := found{index: s.TableIndex(TableEvals)}
		if len(evals) > 0 {
			f = found{rows: len(evals)}
		}
		for _, e := range evals {
			f.index = max(f.index, e.ModifyIndex)
		}
		f.body = func() (any, error) {
			answers, err := evalPage(q, evals)
			addShortages(s, answers)
			return answers, err
		}
		return f
	})
}

// evalPage sorts evaluations by their creation and returns a page of them.
func evalPage(q *request, rows []*cluster.Evaluation) ([]*wire.Evaluation, error) {
	slices.SortFunc(rows, func(a, b *cluster.Evaluation) int { return comparePlace(a, b.CreateIndex, b.ID) })
	return page(q, listing.List[*cluster.Evaluation]{
		Rows:  slices.Values(rows),
		Token: func(e *cluster.Evaluation) string { return fmt.Sprintf("%d.%s", e.CreateIndex, e.ID) },
		Compare: func(e *cluster.Evaluation, token string) int {
			number, id, _ := strings.Cut(token, ".")
			index, _ := strconv.ParseUint(number, 10, 64) // an invalid token begins at the first row
			return comparePlace(e, index, cluster.EvalID(id))
		},
		Full: func(e *cluster.Evaluation) any { return wire.NewEvaluation(e) },
	}, wire.NewEvaluation)
}

// comparePlace compares the place of an evaluation in lists with that of another one.
func comparePlace(e *cluster.Evaluation, index uint64, id cluster.EvalID) int {
	return cmp.Or(cmp.Compare(e.CreateIndex, index), cmp.Compare(e.ID, id))
}

// evalWithShortages returns the evaluation and why its allocations cannot be placed.
func evalWithShortages(s State, e *cluster.Evaluation) *wire.Evaluation {
	w := wire.NewEvaluation(e)
	w.FailedTGAllocs = shortage.Of(s, e)
	return w
}

// addShortages adds why allocations cannot be placed to the evaluations of one job. It computes the
// shortages of each blocked evaluation once.
func addShortages(s State, evals []*wire.Evaluation) {
	known := map[string]map[string]*wire.AllocationMetric{}
	for _, w := range evals {
		open := cmp.Or(w.BlockedEval, w.ID)
		if _, done := known[open]; !done {
			if e := s.Eval(cluster.EvalID(open)); e != nil {
				known[open] = shortage.Of(s, e)
			}
		}
		w.FailedTGAllocs = known[open]
	}
}

// readEval answers GET /v1/evaluation/{id}, in any namespace. With ?related it adds the evaluations
// that this one created, and the one that created it.
func readEval(q *request) error {
	withRelated, err := flag(q.URL.Query(), "related")
	if err != nil {
		return err
	}
	return q.read(func(s State) found {
		e := s.Eval(cluster.EvalID(q.PathValue("id")))
		if a := s.Alloc(cluster.AllocID(q.PathValue("id"))); e == nil && a != nil {
			if w := followUp(s, a); w != nil {
				return found{index: w.ModifyIndex, body: func() (any, error) { return w, nil }}
			}
		}
		if e == nil {
			return found{index: s.TableIndex(TableEvals), missing: evalNotFound}
		}
		return found{index: e.ModifyIndex, body: func() (any, error) {
			w := evalWithShortages(s, e)
			if withRelated {
				w.RelatedEvals = related(s, e)
			}
			return w, nil
		}}
	})
}

// related returns the evaluations that e created and the one that created e, in the order of creation.
func related(s State, e *cluster.Evaluation) []*wire.EvaluationStub {
	others := slices.Collect(listing.Where(s.EvalsByJob(e.JobKey()), func(o *cluster.Evaluation) bool {
		return o.ID == e.PreviousEval || o.ID == e.BlockedEval || o.PreviousEval == e.ID
	}))
	slices.SortFunc(others, func(a, b *cluster.Evaluation) int { return comparePlace(a, b.CreateIndex, b.ID) })
	stubs := make([]*wire.EvaluationStub, len(others))
	for i, o := range others {
		stubs[i] = wire.NewEvaluationStub(o)
	}
	return stubs
}
