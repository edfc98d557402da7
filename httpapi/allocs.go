package httpapi

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listNodeAllocs answers GET /v1/node/{id}/allocations with full allocations, by id; the list is
// empty if the node does not exist. Monitors wait on it. With ?changes it is the answer of
// listNodeChanges.
func listNodeAllocs(q *request) error {
	if q.URL.Query().Has("changes") {
		return listNodeChanges(q)
	}
	return q.read(func(s State) found {
		allocs := slices.Collect(s.AllocsByNode(q.nodeID()))
		return allocsInFull(q, s, allocs)
	})
}

// allocsInFull is found with the allocations in full. Its index is of the newest of
// them, or of the table if there are none.
func allocsInFull(q *request, s State, allocs []*cluster.Allocation) found {
	f := newestAlloc(s, allocs)
	f.body = func() (any, error) {
		rows, err := allocPage(q, s, byID(allocs), func(a *cluster.Allocation) *cluster.Allocation { return a })
		list := wire.NewAllocations(rows, q.options.Region)
		for i, a := range rows {
			list[i].RescheduleTracker, list[i].FollowupEvalID = rescheduled(s, a), followUpID(s, a)
		}
		return list, err
	}
	return f
}

// allocStubs is found with the allocations as lists have them.
func allocStubs(q *request, s State, allocs []*cluster.Allocation) found {
	f := newestAlloc(s, allocs)
	f.body = func() (any, error) { return allocStubPage(q, s, byID(allocs)) }
	return f
}

func newestAlloc(s State, allocs []*cluster.Allocation) found {
	if len(allocs) == 0 {
		return found{index: s.TableIndex(TableAllocs)}
	}
	f := found{rows: len(allocs)}
	for _, a := range allocs {
		f.index = max(f.index, a.ModifyIndex)
	}
	return f
}

// byID sorts allocations, and yields them.
func byID(allocs []*cluster.Allocation) iter.Seq[*cluster.Allocation] {
	slices.SortFunc(allocs, func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Values(allocs)
}

// allocPage returns a page of allocations, as its items have them.
func allocPage[Item any](q *request, s State, rows iter.Seq[*cluster.Allocation], item func(*cluster.Allocation) Item) ([]Item, error) {
	return page(q, listing.List[*cluster.Allocation]{
		Rows:    rows,
		Token:   func(a *cluster.Allocation) string { return string(a.ID) },
		Compare: func(a *cluster.Allocation, token string) int { return cmp.Compare(a.ID, cluster.AllocID(token)) },
		Full: func(a *cluster.Allocation) any {
			w := wire.NewAllocation(a, q.options.Region)
			w.RescheduleTracker, w.FollowupEvalID = rescheduled(s, a), followUpID(s, a)
			return w
		},
	}, item)
}

func allocStubPage(q *request, s State, rows iter.Seq[*cluster.Allocation]) ([]*wire.AllocationListStub, error) {
	return allocPage(q, s, rows, func(a *cluster.Allocation) *wire.AllocationListStub {
		stub := wire.NewAllocationListStub(a)
		stub.RescheduleTracker, stub.FollowupEvalID = rescheduled(s, a), followUpID(s, a)
		return stub
	})
}

// rescheduled lists the predecessors of an allocation that ended unexpectedly, in a row, as long as the
// servers keep them, at most [cluster.MaxReschedules]. It returns nil if there are none.
func rescheduled(s State, a *cluster.Allocation) *wire.RescheduleTracker {
	var events []*wire.RescheduleEvent
	for next := a; next.PreviousAllocation != "" && len(events) < cluster.MaxReschedules; {
		previous := s.Alloc(next.PreviousAllocation)
		if previous == nil || previous.DesiredDescription != cluster.DescRescheduled {
			break
		}
		events = append(events, wire.NewRescheduleEvent(previous, next))
		next = previous
	}
	if len(events) == 0 {
		return nil
	}
	slices.Reverse(events)
	return &wire.RescheduleTracker{Events: events}
}

// followUp returns the evaluation that waits until the replacement of an ended allocation is due, or nil. It has
// the ID of the allocation, and is no row: the time follows from the rows, and the leader creates an evaluation
// with another ID then.
func followUp(s State, a *cluster.Allocation) *wire.Evaluation {
	j := s.Job(a.JobKey())
	r := j.Rescheduling(a, s.Alloc)
	if r == nil || r.DueAt.IsZero() {
		return nil
	}
	w := wire.NewEvaluation(&cluster.Evaluation{
		ID: cluster.EvalID(a.ID), Namespace: a.Namespace, JobID: a.JobID, Type: j.Type, Priority: j.Priority,
		TriggeredBy: cluster.TriggerAllocFailure, Status: cluster.EvalPending, StatusDescription: "created for delayed rescheduling",
		PreviousEval: a.EvalID, CreateTime: a.EndedAt, ModifyTime: a.EndedAt, CreateIndex: a.ModifyIndex, ModifyIndex: a.ModifyIndex,
	})
	w.WaitUntil = wire.NewTime(r.DueAt)
	return w
}

func followUpID(s State, a *cluster.Allocation) string {
	if w := followUp(s, a); w != nil {
		return w.ID
	}
	return ""
}

// listAllocs answers GET /v1/allocations.
func listAllocs(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableAllocs), body: func() (any, error) {
			return allocStubPage(q, s, listing.Where(s.Allocs(), func(a *cluster.Allocation) bool {
				return q.params.within(a.Namespace) && strings.HasPrefix(string(a.ID), q.params.prefix)
			}))
		}}
	})
}

// readAlloc answers GET /v1/allocation/{id}, in any namespace. Its metrics describe the present nodes,
// and the index does not move with them.
func readAlloc(q *request) error {
	return q.read(func(s State) found {
		a := s.Alloc(cluster.AllocID(q.PathValue("id")))
		if a == nil {
			return found{index: s.TableIndex(TableAllocs), missing: allocNotFound}
		}
		return found{index: a.ModifyIndex, body: func() (any, error) {
			w := wire.NewAllocation(a, q.options.Region)
			w.Metrics, w.RescheduleTracker = shortage.Placement(s, a), rescheduled(s, a)
			w.FollowupEvalID = followUpID(s, a)
			w.ControllerCalls = controllerCalls(q, ofAlloc(s, a))
			return w, nil
		}}
	})
}

// stopAlloc answers PUT /v1/allocation/{id}/stop: the allocation stops and is replaced. It ignores the
// body.
func stopAlloc(q *request) error {
	if err := keepsDelays(q.URL.Query()); err != nil {
		return err
	}
	done, err := q.backend.Writer.StopAlloc(q.Context(), cluster.AllocID(q.PathValue("id")))
	if err != nil {
		return orNotFound(err, http.StatusNotFound, allocNotFound)
	}
	answer := wire.AllocStopResponse{Index: done.Index}
	if len(done.Evals) > 0 {
		answer.EvalID = string(done.Evals[0])
	}
	return q.written(done.Index, answer)
}

// listJobAllocs answers GET /v1/job/{id}/allocations. With ?all it includes allocations of an
// earlier, deleted job of the same name.
func listJobAllocs(q *request) error {
	all, err := flag(q.URL.Query(), "all")
	if err != nil {
		return err
	}
	return q.read(func(s State) found {
		job := s.Job(q.jobKey())
		allocs := slices.Collect(listing.Where(s.AllocsByJob(q.jobKey()), func(a *cluster.Allocation) bool {
			return all || job == nil || a.Job == nil || a.Job.CreateIndex == job.CreateIndex
		}))
		return allocStubs(q, s, allocs)
	})
}

// listEvalAllocs answers GET /v1/evaluation/{id}/allocations: the allocations that the evaluation
// placed. They outlive it, so it may be unknown, and the list of one that never existed is empty.
func listEvalAllocs(q *request) error {
	return q.read(func(s State) found {
		id := cluster.EvalID(q.PathValue("id"))
		candidates, created := s.Allocs(), uint64(0)
		if eval := s.Eval(id); eval != nil {
			candidates, created = s.AllocsByJob(eval.JobKey()), eval.CreateIndex
		}
		allocs := slices.Collect(listing.Where(candidates, func(a *cluster.Allocation) bool { return a.EvalID == id }))
		f := allocStubs(q, s, allocs)
		f.index = max(f.index, created)
		return f
	})
}

// listNodeChanges answers GET
// /v1/node/{id}/allocations?changes={cluster}&index={index}&history={history}&shown={index}-{history}:
// what the servers have changed of a node's allocations since an earlier answer of the cluster. The
// node's client reads it. A reader waits for such a change; reports of the client are none.
//
// The answer is complete if the server does not have the changes since then: for an index of
// another cluster, and for one from before the snapshot from which the server was restored. This
// includes all indexes from before an operator restored a saved state. It is also complete if the
// servers have lost the state of the earlier answer, because they started from an older copy of their
// data. The index of that state may be above the present one, or below it. The same is true for the state
// that the answer to a write of the client has shown, because the client must write again.
func listNodeChanges(q *request) error {
	since, cluster := q.params.index, q.backend.Peers.Cluster()
	known := since > 0 && q.URL.Query().Get("changes") == cluster
	had, err := statesOfReader(q)
	if err != nil {
		return err
	}
	return q.read(func(s State) found {
		lost := slices.ContainsFunc(had, func(r readerState) bool { return !s.InHistory(r.index, r.history) })
		c := changes{state: s, cluster: cluster, complete: !known || lost}
		c.read(q.nodeID(), since)
		f := found{index: since, body: func() (any, error) { return c.answer(q), nil }}
		if c.any() {
			f.index++
		}
		return f
	})
}

// readerState identifies a state that a reader of changes has had: see [State.InHistory].
type readerState struct{ index, history uint64 }

// statesOfReader returns the state since which the reader needs changes, and a later one if the reader names it.
// A stale read compares no histories: this server may be behind the one that has answered before.
func statesOfReader(q *request) ([]readerState, error) {
	since := readerState{index: q.params.index}
	history, shown := q.URL.Query().Get("history"), q.URL.Query().Get("shown")
	if q.params.stale {
		return []readerState{since}, nil
	}
	var err error
	if history != "" {
		if since.history, err = strconv.ParseUint(history, 16, 64); err != nil {
			return nil, failure.Bad("Invalid history")
		}
	}
	if shown == "" {
		return []readerState{since}, nil
	}
	var later readerState
	index, history, _ := strings.Cut(shown, "-")
	later.index, err = strconv.ParseUint(index, 10, 64)
	if err == nil {
		later.history, err = strconv.ParseUint(history, 16, 64)
	}
	if err != nil {
		return nil, failure.Bad("Invalid shown state")
	}
	return []readerState{since, later}, nil
}

// changes are what a node's client has to receive of one state.
type changes struct {
	state   State
	cluster string
	// complete means that rows are all allocations that are not client-terminal, and the lost ones whose
	// end the client has to report. Otherwise they are those that the servers have changed.
	complete bool
	rows     []*cluster.Allocation
	// live are the ids of all allocations that are not client-terminal, and of those whose data the client keeps. It is
	// nil if the client needs no list of them.
	live []string
}

// read reads the node's allocations. It walks all of them, which costs little beside encoding one.
func (c *changes) read(id cluster.NodeID, since uint64) {
	if !c.complete && c.state.RemovedAt() > since {
		c.live = []string{}
	}
	for a := range c.state.AllocsByNode(id) {
		if c.live != nil && (!a.ClientTerminal() || cluster.KeepsData(a)) {
			c.live = append(c.live, string(a.ID))
		}
		if c.complete && cluster.IsListed(a) || !c.complete && a.AllocModifyIndex > since {
			c.rows = append(c.rows, a)
		}
	}
}

// any reports whether the client has to receive something.
func (c *changes) any() bool { return c.complete || len(c.rows) > 0 || c.live != nil }

// answer returns the answer, and sets its index: that of the state, so that the client does not send a request
// again about entries that do not concern it.
func (c *changes) answer(q *request) wire.AllocChanges {
	index := max(1, c.state.Index())
	q.indexHeader(index)
	slices.Sort(c.live)
	return wire.AllocChanges{
		ClusterID: c.cluster, Index: index, History: stateID(c.state).History, Complete: c.complete,
		Allocs: wire.NewNodeAllocations(slices.Collect(byID(c.rows)), q.options.Region), Live: c.live,
	}
}

// listChecks answers GET /v1/client/allocation/{id}/checks. The client of the node has the states of checks. An
// allocation without checks, and one that has ended, needs no client.
func listChecks(q *request) error {
	state, err := q.state()
	if err != nil {
		return err
	}
	if a := state.Alloc(cluster.AllocID(q.PathValue("id"))); a == nil || hasChecks(a) {
		return reachAlloc(q)
	}
	q.readHeaders(max(1, state.Index()))
	return q.answer(wire.AllocCheckStatuses{})
}

// hasChecks reports whether a client may run checks of the allocation.
func hasChecks(a *cluster.Allocation) bool {
	if g := a.Job.Group(a.TaskGroup); g != nil && !a.ClientTerminal() {
		for _, s := range g.ServiceDefinitions() {
			if len(s.Checks) > 0 {
				return true
			}
		}
	}
	return false
}
