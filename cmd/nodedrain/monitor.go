package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// monitor follows a drain until it has ended and its allocations have stopped. Run owns the
// goroutines: one for each kind of read.
type monitor struct {
	asked  *client.Client
	follow follower
	// index is the index of the newest known state. The first read of the node waits for a
	// newer one.
	index uint64
	show  drainDisplay
	// patience is how long reads may fail before the monitor gives up.
	patience time.Duration
}

// monitorPatience is how long a monitor retries while no server answers. It is longer than
// an election takes.
const monitorPatience = 30 * time.Second

// Exit codes of a command that monitored a drain.
const (
	exitCancelled   exitCode = 2
	exitInterrupted exitCode = 130
)

// seen is the result of one read: a node, its allocations or its report, or the error that
// ended the reads.
type seen struct {
	node   *wire.Node
	allocs []*wire.Allocation
	report *wire.NodeDrain
	// record is the record of an ended drain, or nil. It comes with node or err.
	record *wire.Drain
	err    error
}

// Run monitors the drain. The error is nil if the drain has ended and all its allocations
// have stopped.
func (m *monitor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	news := make(chan seen) // not buffered: each result is printed before the next read
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

// giveUp prints why the monitor ends, and the drain's outcome if the servers know it.
func (m *monitor) giveUp(s seen) {
	m.show.trouble(time.Now(), s.err.Error())
	for _, line := range outcomeText(s.record) {
		m.show.trouble(time.Now(), line)
	}
}

// tell shows the changes since the last read.
func (m *monitor) tell(s seen, now time.Time) {
	var lines []string
	switch {
	case s.node != nil:
		lines = m.follow.sawNode(s.node, s.record)
	case s.report != nil:
		lines = m.follow.sawReport(s.report)
	default:
		lines = m.follow.sawAllocs(s.allocs)
	}
	for _, line := range lines {
		m.show.event(now, line)
	}
	if m.follow.allocs != nil {
		m.show.progress(m.follow.look(now))
	}
}

// readNode reads the node until it no longer drains.
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

// record returns the servers' record of the ended drain, or nil if they have none.
func (m *monitor) record(ctx context.Context) *wire.Drain {
	report, _, err := m.asked.NodeDrain(ctx, m.follow.node, client.Query{})
	if err != nil || report.State != wire.StateEnded {
		return nil
	}
	return report.Drain
}

// readAllocs reads the node's allocations until the context ends.
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
	// reportWait bounds a blocking read of the reasons: some change with time, without a
	// change of the state.
	reportWait = 2 * time.Second
	// reportInterval is the pause between two reads of the reasons.
	reportInterval = 250 * time.Millisecond
)

// readReport reads why allocations have not moved, while the node drains. It ends without
// an error if the server refuses: the monitor works without reasons.
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

// again repeats a read until it succeeds, the server refuses it, or reads have failed for
// longer than patience.
func again[T any](ctx context.Context, patience time.Duration, read func() (T, client.Answer, error)) (T, client.Answer, error) {
	var failed time.Time // when reads began to fail, or zero
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

// send sends a result. It reports false if the context ends first.
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
