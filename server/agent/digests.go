package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Servers that apply the same log have the same state. A fault of memory or of a disk, or a bug, may
// break that, and nothing in raft detects it. So the leader compares the states now and then.
const (
	// digestAhead is how many entries ahead of its log the leader requests the states, so that no
	// server has passed the index when the request arrives.
	digestAhead = 64
	// digestWait is how long a server waits for an entry above that index. Without one it answers
	// for its present state, which is that of the others, too, when nothing is written.
	digestWait = 2 * time.Second
	// digestTimeout bounds the wait for a server's answer.
	digestTimeout = time.Minute
	// digestShare bounds the cost: comparing rests that many times as long as a digest takes.
	digestShare = 50
	// transferInterval is the wait between two attempts to give leadership away.
	transferInterval = 2 * time.Second
)

// stateDigest identifies a state. Two states of one index must have the same sum.
type stateDigest struct {
	// Index is the state's index, that of its newest entry; zero if the server had passed the index.
	Index uint64
	// Sum is the SHA-256 of the persisted state, in hexadecimal digits.
	Sum string
}

// digestRequest is the request for the state of a server at an index of the log.
type digestRequest struct{ At uint64 }

// verdict is how the state of a server compares.
type verdict struct {
	// Index is that of the compared states, or zero before the first comparison.
	Index uint64
	// Agreement is one of the constants of package httpapi.
	Agreement httpapi.Agreement
}

// digests compares the states of the servers. It owns a goroutine for each request.
type digests struct {
	agent *Agent
	// computing has capacity 1 and holds a value while a digest is computed.
	computing chan struct{}
	// took is how long the last digest took, in nanoseconds.
	took atomic.Int64
	// waiting is the number of waiters, so that most entries pass without the mutex.
	waiting atomic.Int32

	mu sync.Mutex
	// waiters wait for states; guarded by mu.
	waiters []*waiter
	// own is the newest verdict on this server; guarded by mu.
	own verdict
	// others are the newest verdicts of this term, by server; nil on a server that does not lead.
	// Guarded by mu.
	others map[raft.ServerID]verdict
}

// waiter waits for the state at an index.
type waiter struct {
	at uint64
	// reached has capacity 1 and gets the state.
	reached chan *statestore.Snapshot
}

func newDigests(a *Agent) *digests { return &digests{agent: a, computing: make(chan struct{}, 1)} }

// applied handles an applied entry. Raft's FSM goroutine calls it.
func (d *digests) applied(entry shims.Applied) {
	if d.waiting.Load() == 0 {
		return
	}
	d.mu.Lock()
	var reached []*waiter
	d.waiters = slices.DeleteFunc(d.waiters, func(w *waiter) bool {
		passed := w.at < entry.Index
		if passed {
			reached = append(reached, w)
		}
		return passed
	})
	d.waiting.Store(int32(len(d.waiters)))
	d.mu.Unlock()
	for _, w := range reached {
		w.reached <- entry.Before
	}
}

// register waits from now on for the state at an index. The caller calls unregister.
func (d *digests) register(at uint64) *waiter {
	w := &waiter{at: at, reached: make(chan *statestore.Snapshot, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters = append(d.waiters, w)
	d.waiting.Store(int32(len(d.waiters)))
	return w
}

func (d *digests) unregister(w *waiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters = slices.DeleteFunc(d.waiters, func(o *waiter) bool { return o == w })
	d.waiting.Store(int32(len(d.waiters)))
}

// at returns the digest of the state at an index of the log: before the first entry above it. If
// there is none in time, it is that of the present state.
func (d *digests) at(ctx context.Context, index uint64) (stateDigest, error) {
	w := d.register(index)
	defer d.unregister(w)
	if d.agent.server.Store().Snapshot().Index() > index {
		return stateDigest{}, nil
	}
	var state *statestore.Snapshot
	select {
	case state = <-w.reached:
	case <-time.After(digestWait):
		state = d.agent.server.Store().Snapshot()
	case <-ctx.Done():
		return stateDigest{}, context.Cause(ctx)
	}
	return d.of(ctx, state)
}

// of computes the digest of a state. One is computed at a time.
func (d *digests) of(ctx context.Context, state *statestore.Snapshot) (stateDigest, error) {
	select {
	case d.computing <- struct{}{}:
	case <-ctx.Done():
		return stateDigest{}, context.Cause(ctx)
	}
	defer func() { <-d.computing }()
	began, sum := time.Now(), sha256.New()
	if err := statestore.Persist(sum, state); err != nil {
		return stateDigest{}, err
	}
	d.took.Store(int64(time.Since(began)))
	return stateDigest{Index: state.Index(), Sum: hex.EncodeToString(sum.Sum(nil))}, nil
}

// lead compares the states during one term, until its context ends.
func (d *digests) lead(ctx context.Context) {
	defer d.clearOthers()
	for logged := ""; ; {
		wait := max(d.agent.config.CompareInterval, digestShare*time.Duration(d.took.Load()))
		if d.transferLeadership(ctx) {
			wait = transferInterval
		} else if err := d.round(ctx); ctx.Err() == nil && fmt.Sprint(err) != logged {
			logged = fmt.Sprint(err)
			if err != nil {
				d.agent.config.Logger.Info("the states of some servers cannot be compared", "error", err)
			}
		}
		if d.differs() {
			wait = min(wait, transferInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// round compares the states of all servers, and sends each its verdict. The error names the servers
// that do not answer.
func (d *digests) round(ctx context.Context) error {
	a := d.agent
	servers := a.peers().configuration().Servers
	if len(servers) < 2 {
		return nil
	}
	answers, err := d.requestAll(ctx, servers)
	verdicts := compare(servers, answers)
	d.setOthers(verdicts)
	for _, s := range servers {
		v, compared := verdicts[s.ID]
		switch {
		case !compared:
		case string(s.ID) == a.Name():
			d.setOwn(v)
		default:
			d.report(s.ID, v)
			err = errors.Join(err, d.send(ctx, s, v))
		}
	}
	return err
}

// requestAll requests the digests of the states of all servers at once. The error names those that do not
// answer.
func (d *digests) requestAll(ctx context.Context, servers []raft.Server) (map[raft.ServerID]stateDigest, error) {
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	at := d.agent.server.Raft().LastIndex() + digestAhead
	found, err := fromAll(servers, func(s raft.Server) (stateDigest, error) {
		if string(s.ID) == d.agent.Name() {
			return d.at(ctx, at)
		}
		return request[stateDigest](ctx, d.agent, string(s.Address), pathDigest, digestRequest{at})
	})
	maps.DeleteFunc(found, func(_ raft.ServerID, digest stateDigest) bool { return digest.Index == 0 })
	return found, err
}

// compare compares the digests of the states of one index: of the one for which most servers have
// answered. A server differs if a majority of all servers has another state. Without a majority
// nothing names which state is right.
func compare(servers []raft.Server, answers map[raft.ServerID]stateDigest) map[raft.ServerID]verdict {
	byIndex, bySum := map[uint64]int{}, map[stateDigest]int{}
	for _, answer := range answers {
		byIndex[answer.Index]++
		bySum[answer]++
	}
	var index uint64
	for _, s := range servers {
		if i := answers[s.ID].Index; byIndex[i] > byIndex[index] || byIndex[i] == byIndex[index] && i > index {
			index = i
		}
	}
	if byIndex[index] < 2 {
		return nil
	}
	verdicts := make(map[raft.ServerID]verdict)
	decided := false
	for _, s := range servers {
		answer := answers[s.ID]
		if answer.Index != index {
			continue
		}
		v := verdict{Index: index, Agreement: httpapi.StateDiffers}
		if bySum[answer] == byIndex[index] || bySum[answer] > len(servers)/2 {
			v.Agreement, decided = httpapi.StateSame, true
		}
		verdicts[s.ID] = v
	}
	if !decided {
		for id := range verdicts {
			verdicts[id] = verdict{Index: index, Agreement: httpapi.StateUndecided}
		}
	}
	return verdicts
}

func (d *digests) send(ctx context.Context, s raft.Server, v verdict) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := request[verdict](ctx, d.agent, string(s.Address), pathVerdict, v)
	return err
}

// remedy is what the operator does with a server whose state differs.
const remedy = "stop it, run \"nodedrain server recover -discard\" on its data directory, and start it as a new member, as that command describes"

// report logs a verdict on another server.
func (d *digests) report(id raft.ServerID, v verdict) {
	logger := d.agent.config.Logger
	switch v.Agreement {
	case httpapi.StateDiffers:
		logger.Error("a server has another state than the majority, and must not lead: "+remedy, "server", id, "index", v.Index)
	case httpapi.StateUndecided:
		logger.Error("the servers have different states, and no majority of them has the same: "+
			"start the servers that are down, or see \"A server has another state\" in docs/operators.md", "server", id, "index", v.Index)
	}
}

// setOwn stores and logs the verdict on this server.
func (d *digests) setOwn(v verdict) {
	d.report(raft.ServerID(d.agent.Name()), v)
	d.mu.Lock()
	before := d.own
	d.own = v
	d.mu.Unlock()
	if v.Agreement == httpapi.StateSame && before.Agreement == httpapi.StateDiffers {
		d.agent.config.Logger.Info("this server has the state of the majority again", "index", v.Index)
	}
}

// transferLeadership gives leadership to another server if this one must not lead. It reports whether
// this one must not. Raft has no switch that keeps a server from standing for election: without its
// timeout a server would not vote, either.
func (d *digests) transferLeadership(ctx context.Context) bool {
	if !d.differs() {
		return false
	}
	p := d.agent.peers()
	if err := p.await(ctx, p.raft().LeadershipTransfer()); err != nil && ctx.Err() == nil {
		d.agent.config.Logger.Error("this server must not lead, and no other server takes over", "error", err)
	}
	return true
}

// differs reports whether the majority has another state than this server.
func (d *digests) differs() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own.Agreement == httpapi.StateDiffers
}

// setOthers stores the verdicts on the servers. Those on servers that did not answer stay.
func (d *digests) setOthers(verdicts map[raft.ServerID]verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.others == nil {
		d.others = make(map[raft.ServerID]verdict)
	}
	maps.Copy(d.others, verdicts)
}

// clearOthers removes the verdicts on the other servers, at the end of a term.
func (d *digests) clearOthers() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others = nil
}

// verdict is the newest verdict on a server that this server has.
func (d *digests) verdict(id raft.ServerID) verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	if string(id) == d.agent.Name() {
		return d.own
	}
	return d.others[id]
}

// status is for the metrics: whether the state of this server is in doubt, and the index of the
// newest comparison, or zero.
func (d *digests) status() (doubtful bool, compared uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own.Agreement == httpapi.StateDiffers || d.own.Agreement == httpapi.StateUndecided, d.own.Index
}

// checkVerdict refuses a verdict that a server of this build does not send.
func checkVerdict(v verdict) error {
	switch v.Agreement {
	case httpapi.StateSame, httpapi.StateDiffers, httpapi.StateUndecided:
		return nil
	}
	return failure.Bad("the verdict %q is unknown", v.Agreement)
}
