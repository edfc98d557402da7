package datamove_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
)

// queue are requests for copies.
type queue struct {
	*testing.T
	copies *datamove.Copies
	// ready are the requests that got their turn.
	ready []string
	ends  map[string]func()
}

// request begins a request in the background.
func (q *queue) request(ctx context.Context, from, to cluster.NodeID) {
	go func() {
		name := fmt.Sprintf("%s>%s", from, to)
		begun, _, err := q.copies.Begin(ctx, from, to)
		if err != nil {
			name, begun = name+": "+err.Error(), nil
		}
		q.ready = append(q.ready, name)
		if begun != nil {
			q.ends[name] = begun.End
		}
	}()
	synctest.Wait()
}

func (q *queue) end(name string) {
	q.Helper()
	must.MapContainsKey(q, q.ends, name)
	end := q.ends[name]
	delete(q.ends, name)
	end()
	synctest.Wait()
}

// Copies get their turns in the order of their requests. A busy node holds up only its own copies.
func TestCopies_turns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{T: t, copies: datamove.NewCopies(3, datamove.MinRate), ends: map[string]func(){}}
		ctx := t.Context()
		q.request(ctx, "a", "x")
		q.request(ctx, "a", "y") // a sends
		q.request(ctx, "b", "x") // x receives
		q.request(ctx, "b", "z")
		q.request(ctx, "z", "b") // a node may send and receive
		must.Eq(t, []string{"a>x", "b>z", "z>b"}, q.ready)
		left, leave := context.WithCancel(ctx)
		q.request(left, "c", "v")
		q.request(ctx, "d", "w")
		must.Eq(t, datamove.Counts{Running: 3, Waiting: 4}, q.copies.Counts())

		leave()
		synctest.Wait()
		must.Eq(t, []string{"c>v: context canceled"}, q.ready[3:])
		q.end("a>x")
		must.Eq(t, []string{"a>y"}, q.ready[4:])
		q.end("z>b")
		must.Eq(t, []string{"d>w"}, q.ready[5:], must.Sprint("b still sends"))
		q.end("b>z")
		must.Eq(t, []string{"b>x"}, q.ready[6:])
		for _, name := range []string{"a>y", "d>w", "b>x"} {
			q.end(name)
		}
		must.Eq(t, datamove.Counts{}, q.copies.Counts())
	})
}

// A request that leaves in the moment of its turn gives it back.
func TestCopies_leavesWithTurn(t *testing.T) {
	t.Parallel()
	copies := datamove.NewCopies(1, datamove.MinRate)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // either case of the select
		begun, _, err := copies.Begin(ctx, "a", "b")
		if err == nil {
			begun.End()
		}
		must.Eq(t, datamove.Counts{}, copies.Counts())
	}
}

// slow is the target of a copy whose reader takes so long for each part.
type slow struct {
	bytes.Buffer
	takes time.Duration
	// over is closed when a deadline in the past is set.
	over chan struct{}
}

func newSlow(takes time.Duration) *slow { return &slow{takes: takes, over: make(chan struct{})} }

func (s *slow) Write(p []byte) (int, error) {
	select {
	case <-s.over:
		return 0, errors.New("i/o timeout")
	case <-time.After(s.takes):
		return s.Buffer.Write(p)
	}
}

func (s *slow) Flush() error { return nil }

func (s *slow) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		close(s.over)
	}
	return nil
}

// trickle is the source of a copy: so many bytes with a pause before each read. Like the body of an answer it ends
// with its context.
type trickle struct {
	ctx         context.Context
	left, bytes int
	pause       time.Duration
}

func (s *trickle) Read(p []byte) (int, error) {
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
	}
	n := min(len(p), s.bytes, s.left)
	if s.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A copy ends when less than a part of 32 KiB moves in a minute, whichever end is slow.
func TestCopy_progress(t *testing.T) {
	t.Parallel()
	const part = 32 << 10
	for name, c := range map[string]struct {
		bytes        int
		pause, takes time.Duration
		ends         time.Duration // zero: it is complete
	}{
		"slow ends":          {part, 20 * time.Second, 30 * time.Second, 0},
		"a stalled source":   {part, time.Hour, 0, time.Minute},
		"a stalled reader":   {part, 0, time.Hour, time.Minute},
		"both are too slow":  {part, 40 * time.Second, 40 * time.Second, time.Minute},
		"a source of drops":  {1, 5 * time.Second, 0, time.Minute},
		"drops to one part":  {part / 10, 5 * time.Second, 0, 0},
		"a reader in pieces": {part / 2, 0, 29 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				copies := datamove.NewCopies(1, 1<<30)
				begun, ctx, err := copies.Begin(t.Context(), "a", "b")
				must.NoError(t, err)
				at := time.Now()
				to := newSlow(c.takes)
				err = begun.Pass(ctx, to, &trickle{ctx: ctx, left: 4 * part, bytes: c.bytes, pause: c.pause})
				begun.End()
				must.Eq(t, datamove.Counts{Bytes: int64(to.Len())}, copies.Counts())
				if c.ends == 0 {
					must.NoError(t, err)
					must.Eq(t, 4*part, to.Len())
					return
				}
				must.Error(t, err)
				must.Eq(t, c.ends, time.Since(at))
			})
		})
	}
}

// A request ends the earlier one for the same allocation, also in the middle of a copy to a reader that reads nothing.
func TestCopies_newer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		copies := datamove.NewCopies(1, 1<<30)
		first, leaveFirst := copies.Enter(t.Context(), "x")
		other, leaveOther := copies.Enter(t.Context(), "y")
		began, done := time.Now(), make(chan error)
		go func() {
			defer leaveFirst()
			begun, ctx, err := copies.Begin(first, "a", "b")
			must.NoError(t, err)
			defer begun.End()
			done <- begun.Pass(ctx, newSlow(time.Hour), zeros{})
		}()
		time.Sleep(time.Second)
		second, leaveSecond := copies.Enter(t.Context(), "x")
		must.Error(t, <-done)
		must.Eq(t, time.Second, time.Since(began))
		must.ErrorIs(t, context.Cause(first), datamove.ErrNewer)
		synctest.Wait()
		must.Eq(t, datamove.Counts{}, copies.Counts())
		must.NoError(t, other.Err())
		must.NoError(t, second.Err(), must.Sprint("the end of the first one does not end the second one"))
		third, leaveThird := copies.Enter(t.Context(), "x")
		must.ErrorIs(t, context.Cause(second), datamove.ErrNewer)
		leaveSecond()
		leaveThird()
		leaveOther()
		must.Eq(t, context.Canceled, context.Cause(third))
	})
}

// All copies of a server share the rate.
func TestCopies_rate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate, size = 1 << 20, 10 << 20
		copies := datamove.NewCopies(4, rate)
		at := time.Now()
		done := make(chan time.Duration)
		for i := range 4 {
			go func() {
				begun, ctx, err := copies.Begin(t.Context(), cluster.NodeID(fmt.Sprint("from", i)), cluster.NodeID(fmt.Sprint("to", i)))
				must.NoError(t, err)
				defer begun.End()
				must.NoError(t, begun.Pass(ctx, newSlow(0), io.LimitReader(zeros{}, size)))
				done <- time.Since(at)
			}()
		}
		took := []time.Duration{<-done, <-done, <-done, <-done}
		must.Between(t, 39*time.Second, slices.Max(took), 41*time.Second)
		must.Between(t, 38*time.Second, slices.Min(took), 41*time.Second, must.Sprint("the copies are equally fast"))
		must.Eq(t, 4*size, copies.Counts().Bytes)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
