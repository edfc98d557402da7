package drain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

const (
	// nodeWait bounds a blocking read of the node. It is short: the read also shows that the server
	// lives. With the client's limits a dead server is noticed within two seconds.
	nodeWait = time.Second
	// allocsWait bounds a blocking read of the node's allocations. Their answer may be long.
	allocsWait = 5 * time.Second
)

// Monitor follows a drain until it has ended and none of its allocations is left. Run owns the
// goroutines: one for each kind of read.
type Monitor struct {
	API    *client.Client
	Follow Follower
	// index is the index of the newest known state. The first read of the node waits for a
	// newer one.
	Index uint64
	Show  drainDisplay
	// contact ends the monitor when no server answers; outage prints lost connections.
	Contact cli.Contact
	outage  cli.Outage
	// silence is the time since the last line, and changedAt the time of the last line about the drain.
	silence   cli.Silence
	changedAt time.Time
}

// Exit codes of a command that monitored a drain.
const (
	// ExitInUse comes before all others but [ExitUnconfirmed]: a script must not restart the machine.
	ExitInUse       cli.ExitCode = 1
	exitCancelled   cli.ExitCode = 2
	ExitVolumesLeft cli.ExitCode = 3
	// ExitUnconfirmed comes before the others: tasks may run on the node.
	ExitUnconfirmed cli.ExitCode = 4
	// ExitNotCopied comes before that of volumes: a replacement may need the data of the node's disk.
	ExitNotCopied cli.ExitCode = 5
)

// observation is the result of one read: a node, its allocations or its report, or the error that
// ended the reads. Or it is a lost connection, or no server has a leader, with the reason that it has.
type observation struct {
	moved      *client.Move
	leaderless bool
	why        string
	node       *wire.Node
	allocs     []*wire.Allocation
	report     *wire.NodeDrain
	// record is the record of an ended drain, or nil. It comes with node or err. lost is the id of the drain
	// if the servers have neither the drain nor its record any more.
	record *wire.Drain
	lost   string
	err    error
}

// Run monitors the drain. The error is nil if the drain has ended, and none of its allocations is left or the
// monitor waits no longer for them.
// [Monitor.Unconfirmed] has those whose end nothing confirms.
func (m *Monitor) Run(ctx context.Context) error {
	defer m.Show.close()
	request := client.OnRequest(m.API, nil) // the monitor has lines of its own
	defer func() { client.OnRequest(m.API, request) }()
	if err := m.follow(ctx); err != nil {
		return err
	}
	if m.Follow.cancelled {
		return cmp.Or(m.stoppingSince(ctx), error(exitCancelled))
	}
	return nil
}

// follow reads and prints until the monitor can end.
func (m *Monitor) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	observations := make(chan observation) // not buffered: each result is printed before the next read
	m.Contact.Answered()                   // the command has just read the node
	m.changed(time.Now())
	move := m.API.OnMove(func(move client.Move) { send(ctx, observations, observation{moved: &move}) })
	var reading sync.WaitGroup
	reading.Go(func() { m.readNode(ctx, observations) })
	reading.Go(func() { m.readAllocs(ctx, observations) })
	reading.Go(func() { m.readReport(ctx, observations) })
	ticks := time.NewTicker(time.Second)
	defer func() {
		cancel()
		reading.Wait()
		m.API.OnMove(move)
		ticks.Stop()
	}()
	for !m.Follow.over() {
		select {
		case s := <-observations:
			switch {
			case s.moved != nil:
				m.trouble(m.outage.Moved(*s.moved, m.Contact.Patience))
			case s.leaderless:
				m.trouble(m.outage.Leaderless(s.why, m.Contact.Patience))
			case s.err != nil:
				m.giveUp(s)
				return cli.ExitCode(1)
			case s.lost != "":
				m.trouble(fmt.Sprintf("The servers have no drain %s any more, as after a restore of an older state. Its outcome is not known", s.lost))
				return cli.ExitCode(1)
			default:
				if s.report != nil {
					m.outage.Led()
				}
				m.trouble(m.outage.Answered())
				m.print(s, time.Now())
			}
		case now := <-ticks.C:
			m.stillWaiting(now)
		case <-ctx.Done():
			return cli.ExitInterrupted
		}
	}
	return nil
}

// changed notes a line about the drain.
func (m *Monitor) changed(now time.Time) {
	m.changedAt = now
	m.silence.Broken(now)
}

// stillWaiting prints what is waited for, if no line has come for long.
func (m *Monitor) stillWaiting(now time.Time) {
	if !m.silence.Over(now) {
		return
	}
	if what := m.Contact.Waits(m.API); what != "" {
		m.Show.trouble(now, cli.StillWaiting(what, m.Contact.Silent()))
		return
	}
	if what, since := m.outage.Waits(); what != "" {
		m.Show.trouble(now, cli.StillWaiting(what, now.Sub(since)))
		return
	}
	m.Show.event(now, cli.StillWaiting(m.Follow.waits(), now.Sub(m.changedAt)))
}

// stoppingSince prints how many of the allocations that still stopped at a cancel stop now.
func (m *Monitor) stoppingSince(ctx context.Context) error {
	r := m.Follow.record
	if r == nil || r.StillStopping == 0 {
		return nil
	}
	waiting := cli.StartWaiting(m.trouble, func() string { return cli.AnAnswer(m.API) })
	allocs, _, err := cli.Retry(ctx, &m.Contact, func() ([]*wire.Allocation, client.Answer, error) {
		return m.API.NodeAllocations(ctx, m.Follow.Node, client.Query{})
	})
	waiting.End()
	switch {
	case ctx.Err() != nil:
		return cli.ExitInterrupted
	case err != nil:
		return cli.Errorf("Error reading the allocations on the node: %v", err)
	}
	m.Follow.updateAllocs(allocs)
	m.Show.event(time.Now(), m.Follow.stillStopText())
	return nil
}

// trouble prints a line about the connection, unless it is empty.
func (m *Monitor) trouble(line string) {
	if line != "" {
		now := time.Now()
		m.silence.Broken(now)
		m.Show.trouble(now, line)
	}
}

// giveUp prints why the monitor ends, and the drain's outcome if the servers have it.
func (m *Monitor) giveUp(s observation) {
	m.Follow.record = s.record
	m.trouble(s.err.Error())
	for _, line := range outcomeText(s.record) {
		m.trouble(line)
	}
}

// print shows the changes since the last read, oldest first, with the times at which they happened.
func (m *Monitor) print(s observation, now time.Time) {
	var events []event
	left := m.Follow.leaving.left
	switch {
	case s.node != nil:
		events = m.Follow.updateNode(s.node, s.record)
	case s.report != nil:
		events = m.Follow.updateReport(s.report)
	default:
		events = m.Follow.updateAllocs(s.allocs)
	}
	events = append(events, m.Follow.giveUp(now)...)
	for i := range events {
		if events[i].at.IsZero() {
			events[i].at = now
		}
	}
	if len(events) > 0 || m.Follow.leaving.left != left {
		m.changed(now)
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, e := range events {
		m.Show.event(e.at, e.text)
	}
	if m.Follow.counts() {
		m.Show.progress(m.Follow.progress(now))
	}
}

// readNode reads the node until it no longer drains. Then it continues until the context ends, to notice
// a lost connection and a node that becomes eligible.
func (m *Monitor) readNode(ctx context.Context, observations chan<- observation) {
	index, ended, drain := m.Index, false, m.Follow.Drain
	for {
		node, answer, err := cli.Retry(ctx, &m.Contact, cli.Following(index, nodeWait, func(q client.Query) (*wire.Node, client.Answer, error) {
			return m.API.Node(ctx, m.Follow.Node, q)
		}))
		s := observation{node: node}
		switch {
		case err == nil && node.DrainStrategy != nil:
			drain = node.DrainID
		case err == nil && !ended:
			ended = true
			s.record, s.lost = m.record(ctx, drain)
		case err != nil && !ended:
			s = observation{err: cli.Errorf("Error monitoring node: %v", err)}
			s.record, _ = m.record(ctx, drain)
		}
		if (err == nil || !ended) && !send(ctx, observations, s) {
			return
		}
		if err != nil {
			return
		}
		index = answer.Index
	}
}

// record returns the servers' record of an ended drain. It is nil if the servers are of an older build and have
// no records: then drain is empty. lost is the drain if they have no record of it.
func (m *Monitor) record(ctx context.Context, drain string) (record *wire.Drain, lost string) {
	report, _, err := cli.Retry(ctx, &m.Contact, func() (*wire.NodeDrain, client.Answer, error) {
		return m.API.NodeDrain(ctx, m.Follow.Node, client.Query{})
	})
	switch {
	case err != nil:
		return nil, ""
	case report.State == wire.StateEnded && (drain == "" || report.Drain.ID == drain):
		return report.Drain, ""
	case drain == "":
		return nil, ""
	}
	all, _, err := cli.Retry(ctx, &m.Contact, func() (*wire.DrainList, client.Answer, error) { return m.API.Drains(ctx, client.Query{}) })
	if err != nil {
		return nil, ""
	}
	for _, ended := range all.Recent {
		if ended.ID == drain {
			return ended, ""
		}
	}
	return nil, drain
}

// readAllocs reads the node's allocations until the context ends.
func (m *Monitor) readAllocs(ctx context.Context, observations chan<- observation) {
	var index uint64
	for {
		allocs, answer, err := cli.Retry(ctx, &m.Contact, cli.Following(index, allocsWait, func(q client.Query) ([]*wire.Allocation, client.Answer, error) {
			return m.API.NodeAllocations(ctx, m.Follow.Node, q)
		}))
		if err != nil {
			err = cli.Errorf("Error monitoring allocations: %v", err)
		}
		if !send(ctx, observations, observation{allocs: allocs, err: err}) || err != nil {
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
func (m *Monitor) readReport(ctx context.Context, observations chan<- observation) {
	var index uint64
	for {
		report, answer, err := m.API.NodeDrain(ctx, m.Follow.Node, client.Query{Index: index, Wait: reportWait})
		switch {
		case client.Refused(err):
			return
		case err == nil:
			m.Contact.Answered()
			index = answer.Index
			if !send(ctx, observations, observation{report: report}) || report.State != wire.StateDraining {
				return
			}
		case client.NoLeader(err):
			if !send(ctx, observations, observation{leaderless: true, why: client.WhyNoLeader(err)}) {
				return
			}
		}
		if !cli.Pause(ctx, reportInterval) {
			return
		}
	}
}

// send sends a result. It reports false if the context ends first.
func send(ctx context.Context, observations chan<- observation, s observation) bool {
	select {
	case observations <- s:
		return true
	case <-ctx.Done():
		return false
	}
}
