package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// memberCount is the number of servers. Three servers tolerate the loss of one.
const memberCount = 3

// servers are three real servers over hashicorp/raft in memory.
type servers struct {
	*player
	config drainer.NodeDrainerConfig
	// over is cancelled at the end of the play.
	over context.Context
	stop context.CancelCauseFunc
	// tasks changes the servers and performs operations. asking sends the operators' requests,
	// and each request waits for a leader.
	tasks, asking *worker
	// reporting counts the clients' reports under way.
	reporting sync.WaitGroup

	observing sync.Mutex
	// observed is the index of the last observed entry; guarded by observing.
	observed uint64

	mu      sync.Mutex
	members []*member // the slice never changes; mu guards the running process of each
	err     error     // the first failure of the play; guarded by mu
}

// member is one server with the state that outlives its process.
type member struct {
	voter     raft.Server
	logs      *raft.InmemStore
	snapshots *server.MemorySnapshots
	// isolated says that the member is cut off from the others temporarily. cut says that it
	// is cut off forever.
	isolated, cut bool
	// server and transport are nil while the process does not run.
	server    *server.Server
	transport *raft.InmemTransport
}

// errOver is the error of requests that the end of the play cancels.
var errOver = errors.New("the play is over")

// newServers starts the servers of a new cluster.
func newServers(p *player, config drainer.NodeDrainerConfig) (*servers, error) {
	config.NewEvalID = p.ids.eval
	config.OnStep = func(time.Duration) { p.pauseDrainer() }
	s := &servers{player: p, config: config, tasks: startWorker(), asking: startWorker()}
	s.over, s.stop = context.WithCancelCause(context.Background())
	for i := range memberCount {
		id := fmt.Sprintf("s%d", i+1)
		s.members = append(s.members, &member{
			voter: raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)},
			logs:  raft.NewInmemStore(), snapshots: new(server.MemorySnapshots),
		})
	}
	var errs []error
	for _, m := range s.members {
		errs = append(errs, s.boot(m))
	}
	return s, errors.Join(errs...)
}

// longPlay is the duration above which raftSettings slows raft's timers down.
const longPlay = 5 * time.Minute

// raftSettings makes raft take snapshots often and keep few entries, so that a member that falls
// far behind gets a snapshot. A leader that is cut off must propose fewer entries than
// TrailingLogs. Otherwise raft sends it the same snapshot again and again, without a pause. A
// long play has fewer heartbeats and slower elections, so that it needs less processor time.
func raftSettings(play time.Duration) *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = 2*time.Second, 8, 24
	c.CommitTimeout = 2 * time.Second
	if play > longPlay {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 4*time.Second, 4*time.Second, 2*time.Second
	}
	return c
}

// boot starts a member's process.
func (s *servers) boot(m *member) error {
	var voters []raft.Server
	for _, o := range s.members {
		voters = append(voters, o.voter)
	}
	_, transport := raft.NewInmemTransport(m.voter.Address)
	s.mu.Lock()
	m.transport = transport
	s.mu.Unlock()
	s.connect()
	process, err := server.New(server.Config{
		ID: m.voter.ID, Transport: transport, Voters: voters, Raft: raftSettings(s.options.For),
		Log: m.logs, Stable: m.logs, Snapshots: m.snapshots,
		Drainer: s.config, Collect: setting.Collection(s.scenario.Cluster.Collect, 0), OnApply: s.observe, WhileLeading: func(context.Context) { s.flap() },
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	m.server = process
	return err
}

// isolate cuts a member off from the others, or connects it again.
func (s *servers) isolate(m *member, isolated bool) {
	s.mu.Lock()
	m.isolated = isolated
	s.mu.Unlock()
	s.connect()
}

// cutOff cuts off exactly the members of these numbers, from 1, until the next call.
func (s *servers) cutOff(numbers []int) {
	s.mu.Lock()
	for i, m := range s.members {
		m.cut = slices.Contains(numbers, i+1)
	}
	s.mu.Unlock()
	s.connect()
}

// connect connects all running members that are not cut off.
func (s *servers) connect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.members {
		for _, b := range s.members {
			switch {
			case a == b || a.transport == nil:
			case b.transport == nil || a.isolated || b.isolated || a.cut || b.cut:
				a.transport.Disconnect(b.voter.Address)
			default:
				a.transport.Connect(b.voter.Address, b.transport)
			}
		}
	}
}

// process is a member's running server, or nil.
func (s *servers) process(m *member) *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.server
}

// leader waits for a member that leads and that a quorum follows. It returns nil if the context
// ends first.
func (s *servers) leader(ctx context.Context) *member {
	for ctx.Err() == nil {
		for _, m := range s.members {
			if p := s.process(m); p != nil && p.Leads() && p.Raft().VerifyLeader().Error() == nil {
				return m
			}
		}
		sleep(ctx, pollInterval)
	}
	return nil
}

// pollInterval is the wait between two checks or attempts.
const pollInterval = 20 * time.Millisecond

// sleep waits for a duration, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// start makes all servers restore a snapshot of the scenario's initial state.
func (s *servers) start() error {
	leader := s.leader(s.over)
	s.began = time.Now()
	store, register, err := s.initialState()
	if err != nil {
		return fmt.Errorf("writing the initial state: %w", err)
	}
	var snapshot bytes.Buffer
	if err := store.Snapshot().Persist(&snapshot); err != nil {
		return fmt.Errorf("writing the initial snapshot: %w", err)
	}
	meta := &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, Index: store.Snapshot().Index(), Size: int64(snapshot.Len()),
	}
	if err := s.process(leader).Raft().Restore(meta, &snapshot, time.Minute); err != nil {
		return fmt.Errorf("restoring the initial snapshot: %w", err)
	}
	for _, j := range register {
		s.ask(s.requests.Register(j))
	}
	return nil
}

// newestState is the newest state of the running members.
func (s *servers) newestState() *statestore.Snapshot {
	var newest *statestore.Snapshot
	for _, m := range s.members {
		p := s.process(m)
		if p == nil {
			continue
		}
		if state := p.Store().Snapshot(); newest == nil || state.Index() > newest.Index() {
			newest = state
		}
	}
	return newest
}

// observe is called by every server with every entry that it applies.
func (s *servers) observe(a shims.Applied) {
	s.clients.notice(a)
	s.observing.Lock()
	defer s.observing.Unlock()
	if a.Index > s.observed {
		s.observed = a.Index
		s.applied(a)
	}
}

// do adds a task. Tasks run one after the other.
func (s *servers) do(task func() error) {
	s.tasks.add(func() {
		if err := task(); err != nil {
			s.fail(err)
		}
	})
}

// fail records the first failure of the play.
func (s *servers) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// pauseDrainer makes the drainer's goroutine sleep after a step, if a fault strikes that delays
// wake-ups. A server that ends the drainer's term waits for that goroutine.
func (p *player) pauseDrainer() {
	for _, f := range []scenario.FaultName{scenario.WatchDelay, scenario.WatchCoalesce, scenario.LeaderPaused} {
		if delay, strikes := p.faults.strike(f, target{}); strikes {
			time.Sleep(delay)
		}
	}
}

// catchUpTime is the time limit at the end of the play for all servers to reach one state.
const catchUpTime = time.Minute

// end ends all tasks and requests, starts the servers that do not run, waits until all have
// caught up, and shuts them down. It returns the last state.
func (s *servers) end() (*statestore.Snapshot, error) {
	s.stop(errOver)
	s.tasks.end()
	s.asking.end()
	s.reporting.Wait()
	errs := []error{s.err}
	for _, m := range s.members {
		s.isolate(m, false)
		if s.process(m) == nil {
			errs = append(errs, s.boot(m))
		}
	}
	s.cutOff(nil)
	ctx, cancel := context.WithTimeout(context.Background(), catchUpTime)
	defer cancel()
	last := s.leader(ctx)
	if last == nil {
		return s.newestState(), errors.Join(append(errs, errors.New("there is no leader at the end"), s.shutdown(nil))...)
	}
	errs = append(errs, s.process(last).Raft().Barrier(0).Error(), s.sameStates(ctx))
	state := s.newestState()
	return state, errors.Join(append(errs, s.shutdown(last))...)
}

// sameStates waits until the dumps of all servers' states are equal.
func (s *servers) sameStates(ctx context.Context) error {
	for ; ; sleep(ctx, pollInterval) {
		var dumps []string
		for _, m := range s.members {
			var b bytes.Buffer
			if err := s.process(m).Store().Snapshot().Dump(&b); err != nil {
				return fmt.Errorf("dumping the state of %s: %w", m.voter.ID, err)
			}
			dumps = append(dumps, b.String())
		}
		if len(slices.Compact(dumps)) == 1 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the servers have different states %s after the end", catchUpTime)
		}
	}
}

// shutdown shuts all servers down. The leader comes first, while it still has a quorum to commit
// its writes in flight.
func (s *servers) shutdown(leader *member) error {
	ordered := slices.Clone(s.members)
	slices.SortStableFunc(ordered, func(a, b *member) int { return cmp.Compare(rank(a, leader), rank(b, leader)) })
	var errs []error
	for _, m := range ordered {
		errs = append(errs, s.process(m).Shutdown())
	}
	return errors.Join(errs...)
}

func rank(m, leader *member) int {
	if m == leader {
		return 0
	}
	return 1
}
