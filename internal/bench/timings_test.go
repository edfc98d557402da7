package main

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// timings measures the time from the proposal of an entry to its application. It owns one goroutine
// until close.
type timings struct {
	servers *raftServers
	pending chan timing // in the order of the proposals
	done    chan struct{}

	mu sync.Mutex
	// applied holds the times of applied entries by index until await uses them. It is guarded by mu.
	applied map[uint64]time.Time
	// took are the times since the last take. It is guarded by mu.
	took []time.Duration
	// failed counts proposals that were not applied. It is guarded by mu.
	failed int
}

// timing is one proposal.
type timing struct {
	proposed time.Time
	future   raft.ApplyFuture
}

func newTimings(r *raftServers) *timings {
	t := &timings{servers: r, pending: make(chan timing, 1<<16), done: make(chan struct{}), applied: map[uint64]time.Time{}}
	go func() {
		defer close(t.done)
		for p := range t.pending {
			t.await(p)
		}
	}()
	return t
}

// propose proposes an entry and does not wait for it.
func (t *timings) propose(m shims.Message) {
	proposed := time.Now()
	t.pending <- timing{proposed, t.servers.propose(m)}
}

// recordApplied records the time at which an entry was applied. Call it for each entry that t
// proposed.
func (t *timings) recordApplied(index uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied[index] = now
}

// await waits for the outcome of a proposal and records its time. A proposal has no time if it failed
// or if recordApplied was not called.
func (t *timings) await(p timing) {
	err := p.future.Error()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil { // the entry has no index
		t.failed++
		return
	}
	if applied, is := t.applied[p.future.Index()]; is {
		delete(t.applied, p.future.Index())
		t.took = append(t.took, applied.Sub(p.proposed))
	}
}

// take returns the times since the last call.
func (t *timings) take() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := t.took
	t.took = nil
	return took
}

// close waits for all proposals and returns the number that failed.
func (t *timings) close() (failed int) {
	close(t.pending)
	<-t.done
	return t.failed
}

// mean returns the mean of the times. There must be at least one.
func mean(times []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}
