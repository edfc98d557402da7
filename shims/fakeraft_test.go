package shims_test

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// fakeRaft is a raft whose answers come from the test.
type fakeRaft struct {
	mu sync.Mutex
	// futures are the returned futures without an answer, oldest first.
	futures []*fakeFuture
	// proposed are the entries of all returned futures, nil for barriers.
	proposed [][]byte
	// busy is closed when raft accepts entries again; nil if it does.
	busy chan struct{}
}

// fakeFuture ends when done is closed.
type fakeFuture struct {
	done     chan struct{}
	err      error
	response any
	index    uint64
}

func (f *fakeFuture) Error() error  { <-f.done; return f.err }
func (f *fakeFuture) Response() any { return f.response }
func (f *fakeFuture) Index() uint64 { return f.index }

func (r *fakeRaft) Apply(entry []byte, timeout time.Duration) raft.ApplyFuture {
	r.mu.Lock()
	busy := r.busy
	r.mu.Unlock()
	f := &fakeFuture{done: make(chan struct{})}
	if busy != nil {
		select {
		case <-busy:
		case <-time.After(timeout):
			f.err = raft.ErrEnqueueTimeout
			close(f.done)
			return f
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.futures = append(r.futures, f)
	r.proposed = append(r.proposed, entry)
	return f
}

// Barrier returns a future that is also an ApplyFuture, as raft does.
func (r *fakeRaft) Barrier(timeout time.Duration) raft.Future { return r.Apply(nil, timeout) }

// answer ends the oldest future.
func (r *fakeRaft) answer(index uint64, response any, err error) {
	r.mu.Lock()
	f := r.futures[0]
	r.futures = r.futures[1:]
	r.mu.Unlock()
	f.index, f.response, f.err = index, response, err
	close(f.done)
}

// answerAll ends every future with the error.
func (r *fakeRaft) answerAll(err error) {
	for r.waiting() > 0 {
		r.answer(0, nil, err)
	}
}

func (r *fakeRaft) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.futures)
}

func (r *fakeRaft) setBusy(busy chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = busy
}

// names returns the nodes of the proposed messages, made by [named], in order;
// "barrier" for barriers.
func (r *fakeRaft) names(t testing.TB) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, data := range r.proposed {
		if data == nil {
			names = append(names, "barrier")
			continue
		}
		names = append(names, string(decode[*shims.NodeUpdateStatus](t, data).Node))
	}
	return names
}

// newProposer starts a proposer, closed when the test ends.
func newProposer(t testing.TB, r shims.Raft, fsm *shims.FSM, opts shims.Options) *shims.Proposer {
	t.Helper()
	p, err := shims.NewProposer(r, fsm, opts)
	must.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}
