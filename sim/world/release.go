package world

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// volumesActor is the leader's actor for claims: it frees claims on nodes that the servers cannot
// reach, and calls controllers.
type volumesActor struct {
	*leadership
	caller *volumes.Caller
	// lastRead is the index of the last state that was read. over is when the first claim of this
	// state will be freed, on the server's clock, or zero.
	lastRead uint64
	over     time.Time
	// due are the due calls of that state, and shared are the changes that need no call.
	due    []*volumes.Call
	shared []cluster.ClaimChange
	// busy: an entry is in flight. again is when a failed entry is retried, or zero.
	busy  bool
	again time.Time
}

// volumesInterval is the longest delay before the leader frees an overdue claim, or retries a
// failed write.
const volumesInterval = time.Second

func newVolumesActor(l *leadership) *volumesActor {
	return &volumesActor{leadership: l, caller: volumes.NewCaller()}
}

// read reads a new state.
func (a *volumesActor) read() {
	state := a.server.state()
	if state.Index() == a.lastRead {
		return
	}
	a.lastRead, a.over, a.due, a.shared = state.Index(), time.Time{}, nil, nil
	if state.TableIndex(statestore.TableClaims) == 0 {
		return
	}
	for c := range state.WorkView().Claims() {
		if !c.State.OnNode() {
			continue
		}
		if at := volumes.ExpiryOf(c, state.Alloc(c.Alloc), state.Node(c.Node)).At; !at.IsZero() && (a.over.IsZero() || at.Before(a.over)) {
			a.over = at
		}
	}
	a.due, a.shared = volumes.Due(state.WorkView())
	a.caller.Forget(a.due)
}

func (a *volumesActor) nextStep(now time.Time) time.Time {
	a.read()
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, call := range a.due {
		if again := a.caller.Again(call); len(call.Controllers) > 0 && again.After(a.clock()) {
			sooner(again.Add(-a.server.ahead))
		} else if a.caller.Ready(call, a.clock()) {
			sooner(now)
		}
	}
	if !a.busy {
		if len(a.shared) > 0 {
			sooner(later(now, a.again))
		}
		if !a.over.IsZero() {
			sooner(later(a.over.Add(volumesInterval-a.server.ahead), a.again))
		}
	}
	if at.IsZero() {
		return at
	}
	return a.server.afterPause(later(at, a.established))
}

func (a *volumesActor) step() error {
	a.read()
	now := a.clock()
	for _, call := range a.due {
		if a.caller.Ready(call, now) {
			a.world.controllers.begin(a, a.caller.Begin(call))
		}
	}
	if a.busy || a.world.now.Before(a.again) {
		return nil
	}
	changes := append(volumes.Expired(a.server.state().WorkView(), now), a.shared...)
	if len(changes) > 0 {
		a.busy = true
		a.update(changes[:min(len(changes), cluster.MaxClaimChanges)], func(err error) {
			a.busy = false
			if err != nil {
				a.again = a.world.now.Add(volumesInterval)
			}
		})
	}
	return nil
}

// errNotWritten: a change of claims was not applied, or the outcome is unknown.
var errNotWritten = errors.New("simulated: the claims were not updated")

// update proposes changes of claims.
func (a *volumesActor) update(changes []cluster.ClaimChange, done func(error)) {
	writer := proposals{log: a.world.Log, source: FromVolumes, from: a.leadership}
	queued := writer.Propose(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: a.clock(), Changes: changes}}, func(answer shims.Answer) {
		if answer.Outcome != raftwrite.Applied {
			done(errNotWritten)
			return
		}
		done(nil)
	})
	if !queued {
		done(errNotWritten)
	}
}

// confirmActor is the leader's actor that confirms the ends of lost allocations when their nodes
// must have stopped them by themselves.
type confirmActor struct {
	*leadership
	// lastRead is the index of the last state that was read. over is when time confirms the first
	// allocation in it that a record counts, on the server's clock, or zero.
	lastRead uint64
	over     time.Time
	// began is the time of the world when the wait began, and showed what the clock showed then. A
	// clock that is set forward ends no wait.
	began, showed time.Time
	// busy: an entry is in flight. again is when the actor may propose the next one.
	busy  bool
	again time.Time
}

// read reads a new state.
func (a *confirmActor) read() {
	state := a.server.state()
	if state.Index() == a.lastRead {
		return
	}
	waited := !a.over.IsZero()
	a.lastRead, a.over = state.Index(), time.Time{}
	for _, at := range lifecycle.AwaitedStops(state.DrainView(), state.Nodes(), state.Drains()) {
		if a.over.IsZero() || at.Before(a.over) {
			a.over = at
		}
	}
	if !waited {
		a.began, a.showed = a.world.now, a.clock()
	}
}

// steady is the time on the server's clock, but not later than the time that has passed since the
// wait began.
func (a *confirmActor) steady() time.Time {
	return sooner(a.clock(), a.showed.Add(a.world.now.Sub(a.began)))
}

func (a *confirmActor) nextStep(now time.Time) time.Time {
	a.read()
	if a.busy || a.over.IsZero() {
		return time.Time{}
	}
	at := later(now, now.Add(a.over.Sub(a.steady())))
	return a.server.afterPause(later(later(at, a.again), a.established))
}

func (a *confirmActor) step() error {
	a.read()
	now, state := a.steady(), a.server.state()
	a.again = a.world.now.Add(volumesInterval)
	var nodes []cluster.NodeID
	for id, at := range lifecycle.AwaitedStops(state.DrainView(), state.Nodes(), state.Drains()) {
		if !now.Before(at) && len(nodes) < shims.MaxConfirmedNodes {
			nodes = append(nodes, id)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	writer := proposals{log: a.world.Log, source: FromConfirmer, from: a.leadership}
	a.busy = writer.Propose(&shims.ConfirmStops{At: now, Nodes: nodes}, func(shims.Answer) { a.busy = false })
	return nil
}
