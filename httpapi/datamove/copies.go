package datamove

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Patience is how long a copy may make no progress.
const Patience = time.Minute

// Errors that end a request or a copy.
var (
	// ErrNoProgress ends a copy without progress.
	ErrNoProgress = errors.New("no progress for a minute")
	// ErrNewer ends a request when the next one for the same allocation comes.
	ErrNewer = errors.New("a newer request for the data of this allocation has come")
)

// part is the size of the parts of a copy, in bytes. A copy that moves less in the time of [Patience] makes no
// progress.
const part = 32 << 10

// MinRate is the lowest rate, in bytes per second.
const MinRate = 64 << 10

// Copies are the copies of data that one server passes on. It is safe for concurrent use.
type Copies struct {
	rate  *rate.Limiter
	bytes atomic.Int64

	mu    sync.Mutex
	turns *Turns // guarded by mu
	// requests are the newest requests for each allocation; guarded by mu.
	requests map[cluster.AllocID]*requested
}

// requested is a request for the data for an allocation.
type requested struct{ end context.CancelCauseFunc }

// NewCopies returns copies of which at most most run at a time. All together pass at most so many bytes per
// second, at least [MinRate].
func NewCopies(most int, bytesPerSecond int64) *Copies {
	burst := max(part, bytesPerSecond/10) // a late timer loses no time
	return &Copies{turns: NewTurns(most), rate: rate.NewLimiter(rate.Limit(bytesPerSecond), int(burst)), requests: map[cluster.AllocID]*requested{}}
}

// Enter begins a request for the data for an allocation. It ends an earlier one, whose client may be gone: many requests
// for one allocation would hold up those for others. The returned context ends with [ErrNewer] then. The caller calls leave.
func (c *Copies) Enter(ctx context.Context, id cluster.AllocID) (_ context.Context, leave func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	newest := &requested{cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier := c.requests[id]; earlier != nil {
		earlier.end(ErrNewer)
	}
	c.requests[id] = newest
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.requests[id] == newest {
			delete(c.requests, id)
		}
		cancel(nil)
	}
}

// Counts are the counts of the copies of a server.
type Counts struct {
	// Running is how many copies have their turn, Waiting how many requests wait for it.
	Running, Waiting int
	// Bytes are the bytes that were passed on since the start of the server.
	Bytes int64
}

// Counts returns the present counts.
func (c *Copies) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	running, waiting := c.turns.Counts()
	return Counts{Running: running, Waiting: waiting, Bytes: c.bytes.Load()}
}

// Copy is a copy that has its turn. One goroutine uses it.
type Copy struct {
	copies *Copies
	// timer ends the context of the copy when it has made no progress.
	timer *time.Timer
	// moved counts the bytes since the last progress.
	moved int
	end   func()
}

// Begin waits until a copy between two nodes has its turn. The returned context ends with [ErrNoProgress] if the
// copy makes no progress. The caller calls End. The error is the context's.
func (c *Copies) Begin(ctx context.Context, from, to cluster.NodeID) (*Copy, context.Context, error) {
	granted := make(chan struct{})
	c.mu.Lock()
	turn := c.turns.Request(from, to, func() { close(granted) })
	c.mu.Unlock()
	select {
	case <-granted:
	case <-ctx.Done():
		c.leave(turn)
		return nil, ctx, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	begun := &Copy{copies: c, timer: time.AfterFunc(Patience, func() { cancel(ErrNoProgress) })}
	begun.end = func() {
		begun.timer.Stop()
		cancel(nil)
		c.leave(turn)
	}
	return begun, ctx, nil
}

func (c *Copies) leave(turn *Turn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns.Leave(turn)
}

// End ends the copy, and gives its turn back.
func (c *Copy) End() { c.end() }

// Target is where the data of a copy goes. Its reader may be slow.
type Target interface {
	io.Writer
	Flush() error
	// SetWriteDeadline sets the time at which a write ends whose bytes are not read, also one in progress.
	SetWriteDeadline(time.Time) error
}

// Pass passes the data on until its end. The context is that of Begin. After an error the receiver has not got
// all data.
func (c *Copy) Pass(ctx context.Context, to Target, from io.Reader) error {
	_ = to.SetWriteDeadline(time.Time{}) // a recorder of a test has none
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = to.SetWriteDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-ended
		}
	}()
	buffer := make([]byte, part)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := c.pass(ctx, to, buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// pass passes on what was read, at the rate of all copies.
func (c *Copy) pass(ctx context.Context, to Target, content []byte) error {
	if err := c.copies.rate.WaitN(ctx, len(content)); err != nil {
		return err
	}
	if _, err := to.Write(content); err != nil {
		return err
	}
	if err := to.Flush(); err != nil {
		return err
	}
	c.copies.bytes.Add(int64(len(content)))
	if c.moved += len(content); c.moved >= part && c.timer.Stop() {
		c.moved = 0
		c.timer.Reset(Patience)
	}
	return nil
}
