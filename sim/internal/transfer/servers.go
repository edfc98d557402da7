package transfer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// Times of servers and clients.
const (
	// mostCopies is how many copies run at a time. It is less than that of the servers, so that copies
	// wait for each other.
	mostCopies = 2
	// dataWait is how long a request waits until the data is ready, and answerWait how long a client waits for
	// the begin of an answer.
	dataWait, answerWait = 5 * time.Minute, 6 * time.Minute
	// stall is how long a client waits for more data.
	stall = 25 * time.Second
	// longestPart is the longest time of one part of a copy, and leastParts is the least number of parts.
	longestPart, leastParts = 10 * time.Second, 4
	// patience is how often a copy that stands still is tried again.
	patience = time.Second
)

// Options are what the servers need. All fields are required.
type Options struct {
	View func() datamove.View
	// Node returns the machine of a node, or nil.
	Node func(cluster.NodeID) *machine.Node
	// Do advances the machine of a node to the present time, and calls do.
	Do func(id cluster.NodeID, do func()) error
	// Takes is how long a copy for an allocation takes.
	Takes func(*cluster.Allocation) time.Duration
	// Fault draws what becomes of a copy that begins.
	Fault func(to cluster.NodeID) Fault
}

// Fault is a fault of a copy. The zero value is none.
type Fault struct {
	// Cut: the copy is cut after CutAfter.
	Cut      bool
	CutAfter time.Duration
	// SlowFor is how long nothing arrives.
	SlowFor time.Duration
}

// Servers answer the requests of clients for data. They are one server, so all copies share its turns.
type Servers struct {
	options  Options
	turns    *datamove.Turns
	requests []*request
	// changed: the state of the cluster or of the turns has changed.
	changed bool
}

// request is a request for the data for an allocation.
type request struct {
	*machine.Copy
	to cluster.NodeID
	// at is when it arrived, or zero before.
	at time.Time
	// turn is its requested turn, or nil. granted: it has its turn, from is the source at the time of the request
	// for it.
	turn    *datamove.Turn
	granted bool
	from    datamove.Source
	stream  *stream
	// ended: it was ended by a server.
	ended *ending
}

// ending is how a server ends a request.
type ending struct {
	result client.DataResult
	why    string
}

// stream is a copy that runs.
type stream struct {
	*machine.Sending
	sent, part int64
	every      time.Duration
	// next is when the next part arrives, last when one has arrived.
	next, last time.Time
	// cutAt is when the stream is cut, or zero. slowUntil is the time until which nothing arrives.
	cutAt, slowUntil time.Time
}

// New returns servers without requests.
func New(o Options) *Servers { return &Servers{options: o, turns: datamove.NewTurns(mostCopies)} }

// Request adds the request of the client of a node.
func (s *Servers) Request(to cluster.NodeID, c *machine.Copy) {
	s.requests = append(s.requests, &request{Copy: c, to: to})
	s.changed = true
}

// Changed notes that the state of the cluster or of a node has changed.
func (s *Servers) Changed() { s.changed = len(s.requests) > 0 }

// Newer ends the requests for an allocation, because another one has come.
func (s *Servers) Newer(id cluster.AllocID) {
	for _, r := range s.requests {
		if r.Alloc.ID == id {
			r.ended, s.changed = &ending{client.DataFailed, datamove.ErrNewer.Error()}, true
		}
	}
}

// Counts returns how many copies have a turn, and how many wait for one.
func (s *Servers) Counts() (running, waiting int) { return s.turns.Counts() }

// Next returns when the servers must be advanced again, or zero.
func (s *Servers) Next(now time.Time) (at time.Time) {
	if s.changed {
		return now
	}
	for _, r := range s.requests {
		if r.Over() {
			return now
		}
		if next := r.next(); at.IsZero() || next.Before(at) {
			at = next
		}
	}
	return at
}

// next is when a request must be advanced.
func (r *request) next() time.Time {
	switch {
	case r.stream != nil:
		return r.stream.next
	case r.turn != nil:
		return r.at.Add(answerWait)
	}
	return r.at.Add(dataWait)
}

// Advance answers requests and moves data.
func (s *Servers) Advance(now time.Time) error {
	s.changed = false
	var errs []error
	for _, r := range slices.Clone(s.requests) {
		errs = append(errs, s.advance(r, now))
	}
	s.requests = slices.DeleteFunc(s.requests, func(r *request) bool { return r.Over() && r.turn == nil && r.stream == nil })
	return errors.Join(errs...)
}

func (s *Servers) advance(r *request, now time.Time) error {
	if r.at.IsZero() {
		r.at = now
	}
	switch {
	case r.Over():
		return s.close(r)
	case r.ended != nil:
		return s.answer(r, r.ended.result, r.ended.why)
	case r.stream != nil && !r.stream.next.After(now):
		return s.send(r, now)
	case r.stream != nil:
		return nil
	case !s.options.Node(r.to).Reachable():
		return s.answer(r, client.DataUnreached, "no server can be reached")
	}
	found := datamove.Find(s.options.View(), r.Alloc.ID)
	switch {
	case r.granted && (found.State != datamove.Ready || found.Alloc.ID != r.from.Alloc.ID):
		if err := s.close(r); err != nil {
			return err
		}
	case r.granted:
		return s.begin(r, now)
	case r.turn != nil && now.Sub(r.at) >= answerWait:
		return s.answer(r, client.DataUnreached, "the server does not answer the request for data")
	case r.turn != nil:
		return nil
	}
	if found.Alloc != nil {
		r.Name(found.Alloc.ID)
	}
	switch {
	case found.State == datamove.Gone:
		return s.answer(r, client.DataRefused, found.Why)
	case found.State == datamove.Ready:
		r.from = found
		r.turn = s.turns.Request(found.Node.ID, r.to, func() { r.granted, s.changed = true, true })
	case now.Sub(r.at) >= dataWait:
		return s.answer(r, client.DataWaits, found.Why)
	}
	return nil
}

// answer ends a request.
func (s *Servers) answer(r *request, result client.DataResult, why string) error {
	return errors.Join(s.close(r), s.options.Do(r.to, func() { r.Answer(result, why) }))
}

// close ends the copy of a request, and gives its turn back.
func (s *Servers) close(r *request) (err error) {
	if r.stream != nil {
		err = s.options.Do(r.from.Node.ID, r.stream.End)
	}
	if r.turn != nil {
		s.turns.Leave(r.turn)
	}
	r.turn, r.granted, r.stream = nil, false, nil
	return err
}

// begin begins the copy of a request that has its turn.
func (s *Servers) begin(r *request, now time.Time) error {
	source := s.options.Node(r.from.Node.ID)
	if source == nil || !source.Reachable() {
		return s.answer(r, client.DataFailed, fmt.Sprintf("no path to node %s", r.from.Node.ID))
	}
	var result client.DataResult
	var why string
	err := s.options.Do(source.ID(), func() {
		var sending *machine.Sending
		if sending, result, why = machine.SendData(source, r.from.Alloc.ID); sending != nil {
			r.stream = &stream{Sending: sending, sent: r.Arrived(), last: now}
		}
	})
	switch {
	case err != nil:
		return err
	case r.stream == nil:
		return s.answer(r, result, why)
	}
	st := r.stream
	takes := s.options.Takes(r.Alloc)
	parts := max(leastParts, int64((takes+longestPart-1)/longestPart))
	st.part, st.every = max(1, (st.Disk.Bytes+parts-1)/parts), takes/time.Duration(parts)
	st.next = now.Add(st.every)
	f := s.options.Fault(r.to)
	if f.Cut {
		st.cutAt = now.Add(f.CutAfter)
	}
	st.slowUntil = now.Add(f.SlowFor)
	return s.options.Do(r.to, func() { r.Arrive(st.Disk, st.sent) })
}

// send moves the next part of a copy. It moves nothing while one of the two clients stands still.
func (s *Servers) send(r *request, now time.Time) error {
	source, target, st := s.options.Node(r.from.Node.ID), s.options.Node(r.to), r.stream
	connected := machine.Works(source) && source.Reachable() && machine.Works(target) && target.Reachable()
	switch quiet := now.Sub(st.last); {
	case st.Cut():
		return s.answer(r, client.DataFailed, "the session of the node ended")
	case !st.cutAt.IsZero() && !st.cutAt.After(now):
		return s.answer(r, client.DataFailed, "the copy was cut")
	case quiet >= datamove.Patience:
		return s.answer(r, client.DataFailed, datamove.ErrNoProgress.Error())
	case quiet >= stall && machine.Works(target):
		return s.answer(r, client.DataFailed, "nothing has arrived for "+stall.String())
	case !connected || st.slowUntil.After(now):
		st.next = now.Add(patience)
		return nil
	}
	st.sent = min(st.Disk.Bytes, st.sent+st.part)
	st.last, st.next = now, now.Add(st.every)
	return s.options.Do(r.to, func() { r.Arrive(st.Disk, st.sent) })
}
