package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenData() []broken {
	notCopied := &cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a1"}}
	given := func(s *fixture) *fixture {
		s.data("r1", cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: "a1", Why: "no progress"}, nil)
		return s
	}
	changed := func(change func(*rules.AllocExplanation)) func(t *testing.T) *fixture {
		return func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.quiet(func(q *invariant.Quiet) { change(reportOfAlloc(q, "a1")) })
			return s
		}
	}
	return []broken{
		{"a drain that does not wait for data", invariant.EndedEarly, nil, func(t *testing.T) *fixture {
			return dataOnN1(t).endWithData(notCopied)
		}},
		{"a drain that does not wait for a replacement that takes the data", invariant.EndedEarly, nil, func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.failed("r1")
			s.blockEvals("web")
			return s.endWithData(notCopied)
		}},
		{"data that was given up and is not counted", invariant.MiscountedData, nil, func(t *testing.T) *fixture {
			return given(dataOnN1(t)).endWithData(nil)
		}},
		{"data that was given up, with another name", invariant.MiscountedData, nil, func(t *testing.T) *fixture {
			return given(dataOnN1(t)).endWithData(&cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a2"}})
		}},
		{"a drain that is not ended after its data has come", invariant.ValidRefused, nil, func(t *testing.T) *fixture {
			s := given(dataOnN1(t))
			m := s.ends("n1")
			s.fake(m, shims.CompletionsApplied{Refused: []rules.Refusal{{Node: "n1", Why: "no"}}}, func(*statestore.Txn) {})
			return s
		}},
		{"data without a reason", invariant.NoReason, []invariant.Check{invariant.WrongTotals}, func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.quiet(func(q *invariant.Quiet) { q.Reports[0].Allocs, q.Reports[0].Worst = nil, nil })
			return s
		}},
		{"data that has come, with a reason", invariant.ReasonOfAbsent, nil, func(t *testing.T) *fixture {
			s := dataOnN1(t)
			reports := s.explain()
			given(s)
			s.quiet(held, func(q *invariant.Quiet) { q.Reports = reports })
			return s
		}},
		{"data with another reason", invariant.UntrueReason, []invariant.Check{invariant.WrongTotals}, changed(func(r *rules.AllocExplanation) {
			r.Reason = rules.ReasonStopping
		})},
		{"data with another culprit", invariant.WrongCulprit, nil, changed(func(r *rules.AllocExplanation) {
			r.Culprit = &rules.Culprit{Alloc: "a2", Node: "n2", State: rules.CulpritWithoutData}
		})},
		{"data without a culprit", invariant.WrongCulprit, nil, changed(func(r *rules.AllocExplanation) { r.Culprit = nil })},
		{"data with a wrong start", invariant.WrongSince, nil, changed(func(r *rules.AllocExplanation) { r.Since.At = epoch })},
	}
}

func fineData() []fine {
	return []fine{
		{"a drain that ends when the data is copied", func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.quiet()
			s.data("r1", cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopying, Peer: "a1", Bytes: 5, StartedAt: s.now}, nil)
			s.read(1)
			s.quiet()
			s.data("r1", cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopied, Peer: "a1", Bytes: 9}, nil)
			s.end("n1")
			record := s.state().DrainRecord("dn1")
			must.Eq(t, cluster.OutcomeComplete, record.Outcome)
			must.Nil(t, record.DataNotCopied)
			return s
		}},
		{"a drain that ends after the second replacement gave the data up", func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.failed("r1")
			s.place("r2", "web", "n3", replacing("r1"))
			s.read(1)
			s.quiet(held)
			s.data("r2", cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: "a1", Why: "no room"}, nil)
			s.end("n1")
			must.Eq(t, &cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a1"}}, s.state().DrainRecord("dn1").DataNotCopied)
			return s
		}},
		{"a drain whose deadline ends the wait for data", func(t *testing.T) *fixture {
			s := dataOnN1(t)
			s.drain("n1", time.Minute)
			s.wait(time.Minute)
			s.end("n1")
			must.Eq(t, &cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a1"}}, s.state().DrainRecord("dn1").DataNotCopied)
			return s
		}},
	}
}

// dataOnN1 is a fixture with a drain of n1. Its allocation a1 has ended, and the client keeps its data for
// the replacement r1 on n2.
func dataOnN1(t *testing.T) *fixture {
	s := leading(t, invariant.Options{})
	s.apply(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	j := service("web", 3, 1)
	j.TaskGroups[0].EphemeralDisk.Migrate = true
	s.job(j)
	s.drain("n1", 0)
	s.mark(cluster.MarkPaced, "a1")
	s.stop("a1", true)
	s.place("r1", "web", "n2", replacing("a1"))
	s.closeEvals("web")
	s.wait(time.Second)
	s.data("r1", cluster.ClientPending, &cluster.DataMove{State: cluster.DataWaiting, Peer: "a1"}, nil)
	s.data("a1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
	s.read(1)
	return s
}

// data applies the report of a client with moves of data.
func (s *fixture) data(id cluster.AllocID, status cluster.ClientStatus, in, out *cluster.DataMove) {
	s.apply(&shims.AllocClientUpdate{At: s.now, Reports: []cluster.AllocReport{{
		Alloc: id, Node: s.state().Alloc(id).NodeID, ClientStatus: status, DataIn: in, DataOut: out, At: s.now,
	}}})
}

// endWithData ends the drain of n1 without a re-check. The record counts that data as not copied.
func (s *fixture) endWithData(notCopied *cluster.DataNotCopied) *fixture {
	m := s.ends("n1")
	endings := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeComplete, DataNotCopied: notCopied}}
	s.fake(m, shims.CompletionsApplied{Ended: endings}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, endings) })
	return s
}
