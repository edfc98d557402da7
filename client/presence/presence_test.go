//race:skip one goroutine
package presence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// servers are test servers whose answers the test sets.
type servers struct {
	ttl        time.Duration
	registered bool  // whether they have the node
	refuse     error // the answer to registrations, or nil
	down       error // the answer to all requests, or nil
}

func (s *servers) answer(r presence.Request) (time.Duration, error) {
	switch {
	case s.down != nil:
		return 0, s.down
	case r == presence.Register && s.refuse != nil:
		return 0, s.refuse
	case r == presence.Register:
		s.registered = true
	case !s.registered:
		return 0, fmt.Errorf("%w: 403", presence.ErrNotRegistered)
	}
	return s.ttl, nil
}

// play steps a presence up to a time. It returns the requests and when they were sent.
func play(p *presence.Presence, s *servers, now *time.Time, end time.Time, facts uint64) (sent []presence.Request, at []time.Time) {
	for {
		next := p.Step(*now, facts)
		if next.Request == presence.Nothing {
			if next.At.After(end) {
				*now = end
				return sent, at
			}
			*now = next.At
			continue
		}
		sent, at = append(sent, next.Request), append(at, *now)
		ttl, err := s.answer(next.Request)
		p.Answer(*now, ttl, err)
	}
}

func count(sent []presence.Request, r presence.Request) (n int) {
	for _, one := range sent {
		if one == r {
			n++
		}
	}
	return n
}

// A request that no server answers ends at its timeout. The wait before the retry counts from the request, so a node
// whose servers hang sends as many heartbeats as any other: one that is lost costs no other one.
func TestPresence_serversThatHang(t *testing.T) {
	t.Parallel()
	const ttl, beats = 12 * time.Second, 3
	p, now := presence.New(beats, random()), time.Now()
	began := now
	var at []time.Duration
	for len(at) < 10 {
		next := p.Step(now, 1)
		if next.Request == presence.Nothing {
			now = next.At
			continue
		}
		if at = append(at, now.Sub(began)); len(at) == 1 {
			p.Answer(now, ttl, nil)
			continue
		}
		now = now.Add(next.Timeout)
		p.Answer(now, 0, errors.New("no answer"))
	}
	for i, sent := range at {
		must.Eq(t, time.Duration(i)*ttl/beats, sent, must.Sprint(at))
	}
}

// The node registers once, sends its heartbeats, registers at once when the servers have lost it, and
// then sends heartbeats again.
func TestPresence_registersAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, p := &servers{ttl: 30 * time.Second}, presence.New(3, random())
	sent, _ := play(p, s, &now, now.Add(25*time.Second), 0)
	must.Eq(t, []presence.Request{presence.Register, presence.Heartbeat, presence.Heartbeat}, sent)
	s.registered = false
	sent, at := play(p, s, &now, now.Add(25*time.Second), 0)
	must.Eq(t, []presence.Request{presence.Heartbeat, presence.Register, presence.Heartbeat, presence.Heartbeat}, sent)
	must.Eq(t, at[0], at[1])
	must.EqOp(t, 10*time.Second, at[2].Sub(at[1]))
}

// Servers that do not have the node refuse to register it. The node retries for ever, not more often
// than it would send heartbeats and at least every half minute, and sends no heartbeats.
func TestPresence_refused(t *testing.T) {
	t.Parallel()
	for ttl, longest := range map[time.Duration]time.Duration{
		200 * time.Millisecond: presence.FirstRetry, 15 * time.Second: 5 * time.Second, 10 * time.Minute: 30 * time.Second,
	} {
		now := time.Now()
		s, p := &servers{ttl: ttl}, presence.New(3, random())
		play(p, s, &now, now.Add(ttl), 0)
		s.registered, s.refuse = false, errors.New("403")
		play(p, s, &now, now.Add(10*time.Minute), 0)
		sent, at := play(p, s, &now, now.Add(5*time.Hour), 0)
		must.Zero(t, count(sent, presence.Heartbeat))
		for i := range at[1:] {
			must.Between(t, longest/2, at[i+1].Sub(at[i]), longest, must.Sprint(ttl))
		}
		s.refuse = nil
		sent, _ = play(p, s, &now, now.Add(longest), 0)
		must.EqOp(t, presence.Register, sent[0])
	}
}

// While no server answers, the node sends heartbeats with backoff, and no registration.
func TestPresence_serversThatAreDown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, p := &servers{ttl: 30 * time.Second}, presence.New(3, random())
	play(p, s, &now, now.Add(time.Minute), 0)
	s.down = errors.New("connection refused")
	sent, at := play(p, s, &now, now.Add(time.Hour), 0)
	must.Zero(t, count(sent, presence.Register))
	must.Less(t, time.Second, at[1].Sub(at[0]), must.Sprint("another server may answer"))
	must.LessEq(t, 10*time.Second, at[len(at)-1].Sub(at[len(at)-2]))
	s.down = nil
	sent, _ = play(p, s, &now, now.Add(10*time.Second), 0)
	must.EqOp(t, presence.Heartbeat, sent[0])
}

// The servers refuse a change of the node. The node sends its heartbeats in time, and retries the
// registration with each.
func TestPresence_refusedChange(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, p := &servers{ttl: 30 * time.Second}, presence.New(3, random())
	play(p, s, &now, now.Add(time.Second), 0)
	s.refuse = errors.New("a device is listed twice")
	sent, at := play(p, s, &now, now.Add(25*time.Second), 1)
	must.Eq(t, slices.Repeat([]presence.Request{presence.Register, presence.Heartbeat}, 3), sent)
	must.EqOp(t, 20*time.Second, at[5].Sub(at[0]))
	s.refuse = nil
	sent, _ = play(p, s, &now, now.Add(25*time.Second), 1)
	must.Eq(t, []presence.Request{presence.Register, presence.Heartbeat, presence.Heartbeat}, sent)
}

// A change of the node is registered at once, but does not shorten the wait after a failure.
func TestPresence_change(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, p := &servers{ttl: time.Hour}, presence.New(3, random())
	play(p, s, &now, now.Add(time.Minute), 0)
	sent, at := play(p, s, &now, now.Add(time.Minute), 1)
	must.Eq(t, []presence.Request{presence.Register}, sent)
	must.Eq(t, now.Add(-time.Minute), at[0])
	s.down = errors.New("connection refused")
	play(p, s, &now, now.Add(2*time.Hour), 1)
	sent, _ = play(p, s, &now, now, 2)
	must.SliceEmpty(t, sent)
}

// After a restore thousands of nodes register again, at the times of their heartbeats. After the
// servers were down for long, the retries are spread as well.
func TestPresence_manyNodes(t *testing.T) {
	t.Parallel()
	const nodes = 1000
	begin := time.Now()
	back := begin.Add(10 * time.Minute)
	perSecond := make(map[int]int)
	for i := range nodes {
		now := begin
		s := &servers{ttl: time.Minute}
		p := presence.New(3, rand.New(rand.NewPCG(1, uint64(i))))
		play(p, s, &now, begin.Add(time.Second), 0)
		s.down, s.registered = errors.New("connection refused"), false
		play(p, s, &now, back, 0)
		s.down = nil
		sent, at := play(p, s, &now, back.Add(20*time.Second), 0)
		must.Eq(t, []presence.Request{presence.Heartbeat, presence.Register}, sent[:2])
		perSecond[int(at[1].Sub(back)/time.Second)]++
	}
	for second, n := range perSecond {
		must.LessEq(t, 3*nodes/20, n, must.Sprint("second ", second))
	}
}

// Two clients do not have the same waits.
func TestBackoff(t *testing.T) {
	t.Parallel()
	var b presence.Backoff
	r := random()
	for _, most := range []time.Duration{500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
		most *= time.Millisecond
		must.Between(t, most/2, b.Next(10*time.Second, r), most)
	}
	b.Reset()
	must.LessEq(t, presence.FirstRetry, b.Next(10*time.Second, r))
	must.LessEq(t, presence.FirstRetry, b.Next(0, r), must.Sprint("a limit below the first wait"))
	distinct := make(map[time.Duration]bool)
	for range 100 {
		distinct[b.Next(10*time.Second, r)] = true
	}
	must.Greater(t, 90, len(distinct))
}

// A series is logged at its first failure, once a minute, and at its end.
func TestOutage(t *testing.T) {
	t.Parallel()
	var o presence.Outage
	now := time.Now()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for _, c := range []struct {
		at      time.Duration
		success bool
		lasting time.Duration
		log     bool
	}{
		{0, true, 0, false},
		{0, false, 0, true},
		{time.Second, false, time.Second, false},
		{59 * time.Second, false, 59 * time.Second, false},
		{time.Minute, false, time.Minute, true},
		{61 * time.Second, false, 61 * time.Second, false},
		{62 * time.Second, true, 62 * time.Second, true},
		{63 * time.Second, true, 0, false},
		// The next series begins within a minute: it is logged when the minute is over.
		{70 * time.Second, false, 0, false},
		{80 * time.Second, true, 10 * time.Second, false},
		{90 * time.Second, false, 0, false},
		{120 * time.Second, false, 30 * time.Second, true},
		{121 * time.Second, true, 31 * time.Second, true},
	} {
		did := o.Failed
		if c.success {
			did = o.Succeeded
		}
		lasting, log := did(at(c.at))
		must.EqOp(t, c.lasting, lasting, must.Sprint(c))
		must.EqOp(t, c.log, log, must.Sprint(c))
	}
}
