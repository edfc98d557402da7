package httpapi

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listEvals answers GET /v1/evaluations, by id; ?job and ?status narrow it.
func listEvals(q *request) error {
	job, status := q.URL.Query().Get("job"), q.URL.Query().Get("status")
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableEvals), body: func() (any, error) {
			return evalPage(q, keep(s.Evals(), func(e *cluster.Evaluation) bool {
				return q.params.within(e.Namespace) && strings.HasPrefix(string(e.ID), q.params.prefix) &&
					(job == "" || job == string(e.JobID)) && (status == "" || status == string(e.Status))
			}))
		}}, nil
	})
}

// listJobEvals answers GET /v1/job/{id}/evaluations, by id.
func listJobEvals(q *request) error {
	return q.read(func(s State) (found, error) {
		evals := slices.Collect(s.EvalsByJob(q.jobKey()))
		f := found{index: s.TableIndex(TableEvals)}
		if len(evals) > 0 {
			f = found{rows: len(evals)}
		}
		for _, e := range evals {
			f.index = max(f.index, e.ModifyIndex)
		}
		f.body = func() (any, error) {
			slices.SortFunc(evals, func(a, b *cluster.Evaluation) int { return cmp.Compare(a.ID, b.ID) })
			answers, err := evalPage(q, slices.Values(evals))
			addShortages(s, answers)
			return answers, err
		}
		return f, nil
	})
}

func evalPage(q *request, rows iter.Seq[*cluster.Evaluation]) ([]*wire.Evaluation, error) {
	evals, err := page(q, list[*cluster.Evaluation]{
		rows:    rows,
		token:   func(e *cluster.Evaluation) string { return string(e.ID) },
		compare: func(e *cluster.Evaluation, token string) int { return cmp.Compare(e.ID, cluster.EvalID(token)) },
		full:    func(e *cluster.Evaluation) any { return wire.NewEvaluation(e) },
	})
	answers := make([]*wire.Evaluation, len(evals))
	for i, e := range evals {
		answers[i] = wire.NewEvaluation(e)
	}
	return answers, err
}

// evalWithShortages returns the evaluation and why its allocations have no place.
func evalWithShortages(s State, e *cluster.Evaluation) *wire.Evaluation {
	w := wire.NewEvaluation(e)
	w.FailedTGAllocs = shortages(s, e)
	return w
}

// addShortages adds why allocations have no place to the evaluations of one job. It computes the
// shortages of each blocked evaluation once.
func addShortages(s State, evals []*wire.Evaluation) {
	known := map[string]map[string]*wire.AllocationMetric{}
	for _, w := range evals {
		open := cmp.Or(w.BlockedEval, w.ID)
		if _, done := known[open]; !done {
			if e := s.Eval(cluster.EvalID(open)); e != nil {
				known[open] = shortages(s, e)
			}
		}
		w.FailedTGAllocs = known[open]
	}
}

// readEval answers GET /v1/evaluation/{id}, in any namespace.
func readEval(q *request) error {
	return q.read(func(s State) (found, error) {
		e := s.Eval(cluster.EvalID(q.PathValue("id")))
		if e == nil {
			return found{index: s.TableIndex(TableEvals), missing: evalNotFound}, nil
		}
		return found{index: e.ModifyIndex, body: func() (any, error) { return evalWithShortages(s, e), nil }}, nil
	})
}
