package presence

import (
	"errors"
	"math/rand/v2"
	"time"
)

// ErrNotRegistered states that the servers do not have the node or its secret. The node registers
// again.
var ErrNotRegistered = errors.New("the node is not registered")

// Request is a request to the servers.
type Request uint8

// The requests.
const (
	// Nothing: no request is due.
	Nothing Request = iota
	Register
	Heartbeat
)

// String returns the name of the request in logs.
func (r Request) String() string {
	switch r {
	case Register:
		return "registration"
	case Heartbeat:
		return "heartbeat"
	}
	return "nothing"
}

// Next is what the owner of a [Presence] does next.
type Next struct {
	// Request is the request to send now, or Nothing.
	Request Request
	// At is the time of the next step if Request is Nothing, or zero.
	At time.Time
	// Timeout limits the request.
	Timeout time.Duration
}

const (
	// firstTimeout limits requests before the servers have set a TTL. Servers without a leader wait
	// for one.
	firstTimeout = 10 * time.Second
	// minTTL is the shortest TTL that a node obeys.
	minTTL = 100 * time.Millisecond
	// maxRetry is the longest wait before a retry, in a cluster with a long TTL.
	maxRetry = 30 * time.Second
	// firstMaxRetry is the longest wait before the servers have set a TTL.
	firstMaxRetry = 10 * time.Second
)

// Presence keeps one node registered and alive. It belongs to one goroutine. The zero value is not
// usable: see [New].
type Presence struct {
	beats   int
	random  *rand.Rand
	backoff Backoff

	ttl time.Duration // the last TTL, or zero
	// registered: the servers have accepted a registration, and since then have not answered that
	// they do not have the node.
	registered bool
	// facts is the version of the node in the last step, sent in the last registration, and known in
	// the last accepted registration.
	facts, sent, known uint64
	// fallback: the servers have not accepted a change of the node. The next request is a heartbeat.
	fallback bool
	request  Request   // the last one
	began    time.Time // when it was sent
	due      time.Time
}

// New returns the presence of a node that is not registered. The node sends so many heartbeats in
// each TTL, at least 1: with 3, two may be lost. The presence owns random.
func New(beats int, random *rand.Rand) *Presence {
	return &Presence{beats: max(1, beats), random: random}
}

// Step returns the request to send now, or the time of the next step. The caller passes the outcome
// of a request to [Presence.Answer] before the next step. facts is a version of the node: if it
// differs from that of the last accepted registration, the node registers.
func (p *Presence) Step(now time.Time, facts uint64) Next {
	if facts != p.facts {
		p.facts = facts
		if p.backoff.failures == 0 {
			p.due = now
		}
	}
	if now.Before(p.due) {
		return Next{At: p.due}
	}
	p.request, p.began = Heartbeat, now
	if !p.registered || p.known != p.facts && !p.fallback {
		p.request, p.sent = Register, p.facts
	}
	timeout := firstTimeout
	if p.ttl > 0 {
		timeout = max(p.interval(), FirstRetry)
	}
	return Next{Request: p.request, Timeout: timeout}
}

// Answer takes the outcome of the last request: the TTL, or an error. An [ErrNotRegistered] of a
// heartbeat makes the node register at once.
func (p *Presence) Answer(now time.Time, ttl time.Duration, err error) {
	switch {
	case err == nil:
		if p.request == Register {
			p.registered, p.known = true, p.sent
		}
		p.ttl, p.fallback = max(ttl, minTTL), false
		p.backoff.Reset()
		p.due = now.Add(p.interval())
	case p.request == Heartbeat && errors.Is(err, ErrNotRegistered):
		p.registered, p.fallback = false, false
		p.due = now
	case p.request == Register && p.registered:
		// The node sends heartbeats with its old registration. Otherwise it would lose its tasks
		// because the servers refuse a change of the node.
		p.fallback, p.due = true, now
	default:
		p.fallback = false
		// A request without an answer has already waited.
		p.due = p.began.Add(p.backoff.Next(p.longest(), p.random))
	}
}

// interval is the time between two heartbeats.
func (p *Presence) interval() time.Duration { return p.ttl / time.Duration(p.beats) }

// longest is the longest wait before a retry. The TTL grows with the number of nodes, so the nodes
// of a large cluster retry less often. A node in a retry wait is not slower than a node that waits
// for its next heartbeat.
func (p *Presence) longest() time.Duration {
	if p.ttl == 0 {
		return firstMaxRetry
	}
	return min(maxRetry, p.interval())
}
