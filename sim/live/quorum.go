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
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// quorumSize is how many servers there are: it takes three to lose one.
const quorumSize = 3

// quorum is three real servers: hashicorp/raft in memory, and everything that a server
// runs above it.
type quorum struct {
	*player
	config drainer.NodeDrainerConfig
	// over ends when the play does.
	over context.Context
	stop context.CancelCauseFunc
	// errands are what is done to servers, requests what operators ask of them.
	errands, requests *line
	// reporting are the reports that are being made.
	reporting sync.WaitGroup

	observing sync.Mutex
	// observed is the index of the last entry that the witness was shown; guarded by
	// observing.
	observed uint64

	mu      sync.Mutex
	members []*member // what runs of them is guarded by mu
	err     error     // the first thing that went wrong with the play; guarded by mu
}

// member is one server, and what outlives its process.
type member struct {
	voter     raft.Server
	logs      *raft.InmemStore
	snapshots *raft.InmemSnapshotStore
	// server and transport are nil while the process is dead.
	server    *server.Server
	transport *raft.InmemTransport
}

var _ servers = (*quorum)(nil)

// errOver is why nothing is asked any more.
var errOver = errors.New("the play is over")

// newQuorum boots the servers of a new cluster.
func newQuorum(p *player, config drainer.NodeDrainerConfig) (*quorum, error) {
	config.NewEvalID = p.ids.eval
	q := &quorum{player: p, config: config, errands: newLine(), requests: newLine()}
	q.over, q.stop = context.WithCancelCause(context.Background())
	for i := range quorumSize {
		id := fmt.Sprintf("s%d", i+1)
		q.members = append(q.members, &member{
			voter: raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)},
			logs:  raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore(),
		})
	}
	var errs []error
	for _, m := range q.members {
		errs = append(errs, q.boot(m))
	}
	return q, errors.Join(errs...)
}

// boot starts a member's process over what has outlived the last one. Snapshots are
// taken often, and little is kept of the log: who falls behind gets a snapshot.
func (q *quorum) boot(m *member) error {
	var voters []raft.Server
	for _, o := range q.members {
		voters = append(voters, o.voter)
	}
	settings := raft.DefaultConfig()
	settings.BatchApplyCh = true
	settings.SnapshotInterval, settings.SnapshotThreshold, settings.TrailingLogs = 2*time.Second, 8, 2
	_, transport := raft.NewInmemTransport(m.voter.Address)
	q.mu.Lock()
	m.transport = transport
	q.mu.Unlock()
	q.connect(nil)
	s, err := server.New(server.Config{
		ID: m.voter.ID, Transport: transport, Voters: voters, Raft: settings,
		Log: m.logs, Stable: m.logs, Snapshots: m.snapshots,
		Drainer: q.config, OnApply: q.observe,
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	m.server = s
	return err
}

// connect joins all that run with each other, but for one that is cut off, or nil.
func (q *quorum) connect(cut *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.members {
		for _, b := range q.members {
			switch {
			case a == b || a.transport == nil:
			case b.transport == nil || a == cut || b == cut:
				a.transport.Disconnect(b.voter.Address)
			default:
				a.transport.Connect(b.voter.Address, b.transport)
			}
		}
	}
}

// runs is a member's server, or nil.
func (q *quorum) runs(m *member) *server.Server {
	q.mu.Lock()
	defer q.mu.Unlock()
	return m.server
}

// leader waits for a member that leads and that a quorum follows; nil if the context
// ends before.
func (q *quorum) leader(ctx context.Context) *member {
	for ctx.Err() == nil {
		for _, m := range q.members {
			if s := q.runs(m); s != nil && s.Leads() && s.Raft().VerifyLeader().Error() == nil {
				return m
			}
		}
		sleep(ctx, lookAgain)
	}
	return nil
}

// lookAgain is the wait before something is looked at, or asked, again.
const lookAgain = 20 * time.Millisecond

// sleep waits, until the context ends at the latest.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// start has all servers restore a snapshot in which the scenario has begun.
func (q *quorum) start() error {
	m := q.leader(q.over)
	q.began = time.Now()
	b := q.begin()
	store := statestore.New()
	for i, write := range b.writes {
		txn := store.Begin(uint64(i + 1))
		if err := write(txn); err != nil {
			txn.Abort()
			return err
		}
		txn.Commit()
	}
	var snapshot bytes.Buffer
	if err := store.Snapshot().Persist(&snapshot); err != nil {
		return fmt.Errorf("writing the beginning: %w", err)
	}
	meta := &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, Index: store.Snapshot().Index(), Size: int64(snapshot.Len()),
	}
	if err := q.runs(m).Raft().Restore(meta, &snapshot, time.Minute); err != nil {
		return fmt.Errorf("restoring the beginning: %w", err)
	}
	for _, j := range b.register {
		q.ask(q.player.requests.Register(j))
	}
	return nil
}

// truth is the newest state of those that run.
func (q *quorum) truth() *statestore.Snapshot {
	var newest *statestore.Snapshot
	for _, m := range q.members {
		s := q.runs(m)
		if s == nil {
			continue
		}
		if state := s.Store().Snapshot(); newest == nil || state.Index() > newest.Index() {
			newest = state
		}
	}
	return newest
}

// observe is told by every server of every entry that it applies.
func (q *quorum) observe(a shims.Applied) {
	q.clients.notice(a)
	q.observing.Lock()
	defer q.observing.Unlock()
	if a.Index > q.observed {
		q.observed = a.Index
		q.applied(a)
	}
}

// fail notes the first thing that goes wrong with the play.
func (q *quorum) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
}

// patience is how long the servers have to come to one state at the end.
const patience = time.Minute

// end ends what is being done, has every server run and catch up, and shuts them down.
func (q *quorum) end() (*statestore.Snapshot, error) {
	q.stop(errOver)
	q.errands.end()
	q.requests.end()
	q.reporting.Wait()
	errs := []error{q.err}
	for _, m := range q.members {
		if q.runs(m) == nil {
			errs = append(errs, q.boot(m))
		}
	}
	q.connect(nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	last := q.leader(ctx)
	if last == nil {
		return q.truth(), errors.Join(append(errs, errors.New("there is no leader at the end"), q.shutdown(nil))...)
	}
	errs = append(errs, q.runs(last).Raft().Barrier(0).Error(), q.sameStates(ctx))
	state := q.truth()
	return state, errors.Join(append(errs, q.shutdown(last))...)
}

// sameStates waits until all servers have the same state, to the last byte.
func (q *quorum) sameStates(ctx context.Context) error {
	for ; ; sleep(ctx, lookAgain) {
		var dumps []string
		for _, m := range q.members {
			var b bytes.Buffer
			if err := q.runs(m).Store().Snapshot().Dump(&b); err != nil {
				return fmt.Errorf("dumping the state of %s: %w", m.voter.ID, err)
			}
			dumps = append(dumps, b.String())
		}
		if len(slices.Compact(dumps)) == 1 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the servers have different states %s after the end", patience)
		}
	}
}

// shutdown ends all servers: the leader first, while it has a quorum to settle what it
// was writing.
func (q *quorum) shutdown(leader *member) error {
	first := slices.Clone(q.members)
	slices.SortStableFunc(first, func(a, b *member) int { return cmp.Compare(rank(a, leader), rank(b, leader)) })
	var errs []error
	for _, m := range first {
		errs = append(errs, q.runs(m).Shutdown())
	}
	return errors.Join(errs...)
}

func rank(m, leader *member) int {
	if m == leader {
		return 0
	}
	return 1
}
