package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// monitor watches a drain until it has ended and what had to leave has stopped. Run owns
// the goroutines: one for each thing that is read.
type monitor struct {
	asked  *client.Client
	follow follower
	// index is that of the newest state that is known: the node is read from there on.
	index uint64
	show  drainDisplay
	// patience is how long answers may fail before the monitor gives up.
	patience time.Duration
}

// monitorPatience is how long a monitor asks on while no server answers: longer than the
// servers take to find a new leader.
const monitorPatience = 30 * time.Second

// Exit codes of a command that has watched a drain.
const (
	exitCancelled   exitCode = 2
	exitInterrupted exitCode = 130
)

// seen is one thing that was read, or the error that ended the reading of it.
type seen struct {
	node   *wire.Node
	allocs []*wire.Allocation
	report *wire.NodeDrain
	// record is that of a drain that has ended; with node or err, or nil.
	record *wire.Drain
	err    error
}

// Run watches. The error is nil if the drain has ended and all had stopped.
func (m *monitor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan seen) // not buffered: what is seen is told before more is read
	var reading sync.WaitGroup
	reading.Go(func() { m.readNode(ctx, news) })
	reading.Go(func() { m.readAllocs(ctx, news) })
	reading.Go(func() { m.readReport(ctx, news) })
	defer func() {
		cancel()
		reading.Wait()
		m.show.close()
	}()
	for !m.follow.over() {
		select {
		case s := <-news:
			if s.err != nil {
				m.giveUp(s)
				return exitCode(1)
			}
			m.tell(s, time.Now())
		case <-ctx.Done():
			return exitInterrupted
		}
	}
	if m.follow.cancelled {
		return exitCancelled
	}
	return nil
}

// giveUp tells why there is no more to be seen.
func (m *monitor) giveUp(s seen) {
	m.show.trouble(time.Now(), s.err.Error())
	for _, line := range outcomeText(s.record) {
		m.show.trouble(time.Now(), line)
	}
}

// tell shows what is new in what was seen.
func (m *monitor) tell(s seen, now time.Time) {
	var lines []string
	switch {
	case s.node != nil:
		lines = m.follow.sawNode(s.node, s.record)
	case s.report != nil:
		lines = m.follow.sawReport(s.report)
	default:
		lines = m.follow.sawAllocs(s.allocs, now)
	}
	for _, line := range lines {
		m.show.event(now, line)
	}
	if m.follow.allocs != nil {
		m.show.progress(m.follow.look(now))
	}
}

// readNode reads the node until it does not drain any more.
func (m *monitor) readNode(ctx context.Context, news chan<- seen) {
	index := m.index
	for {
		node, answer, err := again(ctx, m.patience, func() (*wire.Node, client.Answer, error) {
			return m.asked.Node(ctx, m.follow.node, client.Query{Index: index, Stale: true})
		})
		s := seen{node: node}
		if err != nil {
			s = seen{err: fmt.Errorf("Error monitoring node: %w", err)}
		}
		last := err != nil || node.DrainStrategy == nil
		if last {
			s.record = m.record(ctx)
		}
		if !send(ctx, news, s) || last {
			return
		}
		index = answer.Index
	}
}

// record is what the servers keep of a drain that has ended, or nil if they do not say.
func (m *monitor) record(ctx context.Context) *wire.Drain {
	report, _, err := m.asked.NodeDrain(ctx, m.follow.node, client.Query{})
	if err != nil || report.State != wire.StateEnded {
		return nil
	}
	return report.Drain
}

// readAllocs reads the node's allocations for as long as anybody listens.
func (m *monitor) readAllocs(ctx context.Context, news chan<- seen) {
	var index uint64
	for {
		allocs, answer, err := again(ctx, m.patience, func() ([]*wire.Allocation, client.Answer, error) {
			return m.asked.NodeAllocations(ctx, m.follow.node, client.Query{Index: index, Stale: true})
		})
		if err != nil {
			err = fmt.Errorf("Error monitoring allocations: %w", err)
		}
		if !send(ctx, news, seen{allocs: allocs, err: err}) || err != nil {
			return
		}
		index = answer.Index
	}
}

const (
	// reportWait is how soon the reasons are asked for anew although nothing has changed:
	// some change with time.
	reportWait = 2 * time.Second
	// reportInterval is how long they are left alone in between.
	reportInterval = 250 * time.Millisecond
)

// readReport reads why allocations have not moved, for as long as the node drains and the
// server says. What it does not say is not told: the drain goes on all the same.
func (m *monitor) readReport(ctx context.Context, news chan<- seen) {
	var index uint64
	for {
		report, answer, err := m.asked.NodeDrain(ctx, m.follow.node, client.Query{Index: index, Wait: reportWait})
		switch {
		case client.Refused(err):
			return
		case err == nil:
			index = answer.Index
			if !send(ctx, news, seen{report: report}) || report.State != wire.StateDraining {
				return
			}
		}
		if !pause(ctx, reportInterval) {
			return
		}
	}
}

// again reads until there is an answer that asking again would not change, or answers have
// failed for longer than patience.
func again[T any](ctx context.Context, patience time.Duration, read func() (T, client.Answer, error)) (T, client.Answer, error) {
	var failed time.Time // since when answers fail; zero: they do not
	for {
		out, answer, err := read()
		if err == nil || client.Refused(err) || ctx.Err() != nil {
			return out, answer, err
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		if time.Since(failed) > patience || !pause(ctx, client.Pause) {
			return out, answer, err
		}
	}
}

// send hands over what was seen. It reports false if nobody listens any more.
func send(ctx context.Context, news chan<- seen, s seen) bool {
	select {
	case news <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits. It reports false if the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
