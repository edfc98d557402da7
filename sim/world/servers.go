package world

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Servers are the servers of a world. Exactly one of them leads.
type Servers struct {
	world *World
	all   []*server
	// leader is the current leadership; never nil after [New] has returned.
	leader *leadership
	// deposed are the leaderships that have ended and whose drainers still step.
	deposed []*leadership
	terms   int
	// observed is the index of the newest entry that any server has applied.
	observed uint64
	// recent are the states after the last entries, the newest last.
	recent []*statestore.Snapshot
}

// server is one server: a state, a clock and a process. Only the leader applies new entries. A
// new leader reads an old state, as in raft, until an entry of its term is committed. Then it
// catches up.
type server struct {
	number int // from 0
	// replica belongs to the server alone, or to all servers if they are views; never nil.
	replica *replica
	// behind is the old state that a view reads while it is behind, or nil.
	behind *statestore.Snapshot
	// newest is the index of the newest state that the server has read as a leader.
	newest uint64
	// ahead is the time by which the server's clock is ahead of the world's time.
	ahead time.Duration
	// pausedUntil is the end of the last pause of the server's process.
	pausedUntil time.Time
	// cutOff: the process is paused forever and never leads again.
	cutOff bool
}

func newServers(w *World) *Servers {
	ss := &Servers{world: w}
	var shared *replica
	for i := range w.options.Servers {
		s := &server{number: i, replica: shared}
		if s.replica == nil {
			s.replica = newReplica(w.options.From, func(a shims.Applied) { ss.applied(i, a) })
		}
		if w.options.Views {
			shared = s.replica
		}
		ss.all = append(ss.all, s)
	}
	return ss
}

// maxBehind is the largest number of states that a new leader may be behind.
const maxBehind = 8

// applied calls the observers, and wakes the scheduler, when a server has applied an entry.
func (ss *Servers) applied(server int, a shims.Applied) {
	ss.world.observer.ReplicaApplied(server, a)
	if ss.all[server].replica == ss.leader.server.replica {
		ss.leader.schedulerAlarm.wake()
	}
	if a.Index <= ss.observed {
		return // the server is catching up
	}
	ss.observed = a.Index
	if len(ss.recent) == maxBehind {
		ss.recent = append(ss.recent[:0], ss.recent[1:]...)
	}
	ss.recent = append(ss.recent, a.After)
	ss.world.applied(a)
}

// Count is the number of servers.
func (ss *Servers) Count() int { return len(ss.all) }

// SetClock sets the time by which a server's clock is ahead of the world's time. It may be
// negative.
func (ss *Servers) SetClock(number int, ahead time.Duration) {
	s := ss.all[number]
	leaders := append([]*leadership{ss.leader}, ss.deposed...)
	for _, l := range leaders {
		if l.server == s && l.collector != nil {
			l.collector.unsettle() // its next round was set by the old clock
		}
	}
	s.ahead = ahead
	for _, l := range leaders {
		if l.server == s {
			l.drainerAlarm.clockSet(ss.world.now)
			l.schedulerAlarm.clockSet(ss.world.now)
			if l.collector != nil {
				l.collector.alarm.clockSet(ss.world.now)
			}
			l.notifyClock()
		}
	}
}

// Pause stops a server's process for a duration. The process takes no steps. If the server
// leads, the log applies nothing, and writes that were just proposed do not leave the process.
func (ss *Servers) Pause(number int, d time.Duration) {
	s := ss.all[number]
	s.pausedUntil = later(s.pausedUntil, ss.world.now.Add(d))
}

// WakeDrainer wakes the leader's drainer without a reason.
func (ss *Servers) WakeDrainer() { ss.leader.drainerAlarm.wake() }

// Reports returns the reports of the leader's drainer on all draining nodes, sorted by node.
func (ss *Servers) Reports() []rules.Report { return ss.leader.drainer.Reports(ss.world.Clock()) }

// Followed returns the jobs that the leader's drainer follows, sorted.
func (ss *Servers) Followed() []cluster.JobKey { return ss.leader.reader.followed() }

// Reader returns a reader of the state that the leader's drainer reads.
func (ss *Servers) Reader() drainer.StateReader {
	r := ss.newReader(ss.leader.server)
	r.stale = ss.leader.reader.stale
	return r
}

// States makes every server apply the whole log and returns their states, the leader's first.
// Views have one state together.
func (ss *Servers) States() ([]*statestore.Snapshot, error) {
	leader := ss.leader.server.replica
	replicas := []*replica{leader}
	for _, s := range ss.all {
		if s.replica != leader {
			replicas = append(replicas, s.replica)
		}
	}
	states := make([]*statestore.Snapshot, len(replicas))
	for i, r := range replicas {
		if _, err := r.catchUp(ss.world.Log.entries); err != nil {
			return nil, fmt.Errorf("catching up: %w", err)
		}
		states[i] = r.state()
	}
	return states, nil
}

// Fork returns a store of its own with the state of [World.Truth].
func (ss *Servers) Fork() *statestore.Store { return ss.newest().fsm.Store().Fork() }

// newest returns the replica with the newest state.
func (ss *Servers) newest() *replica {
	newest := ss.all[0].replica
	for _, s := range ss.all[1:] {
		if s.replica.applied > newest.applied {
			newest = s.replica
		}
	}
	return newest
}

// state is the newest state that the server can read.
func (s *server) state() *statestore.Snapshot {
	if s.behind != nil {
		return s.behind
	}
	return s.replica.state()
}

// paused reports whether the server's process is paused.
func (s *server) paused(now time.Time) bool { return now.Before(s.pausedUntil) }

// afterPause returns the later of a time and the end of the server's pause. A zero time stays
// zero.
func (s *server) afterPause(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return later(at, s.pausedUntil)
}

// replica is a state machine, with the number of entries that it has applied.
type replica struct {
	fsm     *shims.FSM
	observe func(shims.Applied) // never nil
	// applied is the number of applied entries.
	applied int
}

// newReplica returns a replica of a cluster whose servers all run this build. It begins with the state of a store,
// or empty.
func newReplica(from *statestore.Store, observe func(shims.Applied)) *replica {
	config := shims.FSMConfig{OnApply: observe}
	if from != nil {
		r := &replica{fsm: shims.NewFSMOver(from.Fork(), config), observe: observe}
		r.applied = int(r.state().Index())
		return r
	}
	r := &replica{fsm: shims.NewFSM(config), observe: observe}
	txn := r.fsm.Store().Begin(0)
	txn.RaiseClusterVersion(cluster.MaxVersion)
	txn.Commit()
	return r
}

// catchUp applies the entries that the replica has not applied yet. It returns the response to
// the last entry, or nil if that entry has no message.
func (r *replica) catchUp(entries []logEntry) (response shims.Response, err error) {
	for r.applied < len(entries) && err == nil {
		e := entries[r.applied]
		r.applied++
		response = nil
		switch index := uint64(r.applied); {
		case e.write != nil:
			err = r.write(index, e.write)
		case e.data != nil:
			response, err = r.fsm.ApplyEntry(index, e.data)
		}
	}
	return response, err
}

// write runs a direct write. Observers get an entry without a message.
func (r *replica) write(index uint64, do func(*statestore.Txn) error) error {
	before := r.state()
	txn := r.fsm.Store().Begin(index)
	defer txn.Abort()
	if err := do(txn); err != nil {
		return err
	}
	txn.Commit()
	r.observe(shims.Applied{Index: index, Response: shims.Skipped{}, Before: before, After: r.state()})
	return nil
}

// state is the replica's newest state.
func (r *replica) state() *statestore.Snapshot { return r.fsm.Store().Snapshot() }
