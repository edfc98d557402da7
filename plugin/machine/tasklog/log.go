package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// bufferSize bounds each of a log's two buffers, in bytes. One fills while the other is written.
	bufferSize = 64 << 10
	// idleBuffer is the largest buffer that an idle log keeps.
	idleBuffer = 16 << 10
	// noteSize is kept free in a buffer for the line about dropped lines.
	noteSize = 256
	// retryAfter is how long a log waits after a failed write.
	retryAfter = time.Second
	// patience is how long a reader waits for its bytes to reach the file.
	patience = 5 * time.Millisecond
)

// Log is a [Writer] behind a buffer. [Log.Put] never waits for the disk.
//
// A Log has one goroutine, which writes. [Log.Close] ends it.
type Log struct {
	writer *Writer
	wake   chan struct{} // capacity 1: there is something to write
	wrote  chan struct{} // capacity 1: the goroutine has written something
	ended  chan struct{} // closed when the goroutine has ended
	// giveUp is canceled when the goroutine must not wait for the disk any longer.
	giveUp   context.Context
	endWaits context.CancelFunc

	mu struct {
		sync.Mutex
		fill    []byte // what the goroutine takes next
		taken   uint64 // bytes that Put has taken, those that it dropped included
		written uint64 // bytes of them that are done with
		midLine bool   // whether the last byte that was kept is inside a line
		drops   drops
		total   drops // all drops until now
		failure error // of the last write, or nil
		closing bool
	}
}

// drops counts what was dropped since the last line about it.
type drops struct {
	lines, bytes uint64
	// torn means that the buffer has the beginning of the first dropped line.
	torn bool
	// midLine means that the next byte continues a dropped line.
	midLine bool
	why     error
}

var errSlow = errors.New("the disk is slow")

// NewLog starts a log that writes to w. Close closes w too.
func NewLog(w *Writer) *Log {
	giveUp, endWaits := context.WithCancel(context.Background())
	l := &Log{
		writer: w, wake: make(chan struct{}, 1), wrote: make(chan struct{}, 1), ended: make(chan struct{}),
		giveUp: giveUp, endWaits: endWaits,
	}
	go l.run()
	return l
}

// Put takes all of p, to be written soon. If the buffer has no room, whole lines are dropped and
// counted until half of the buffer is free again. Put is for one goroutine. A p of more than 32 KiB
// may be dropped although the disk is well.
func (l *Log) Put(p []byte) {
	l.mu.Lock()
	l.put(p)
	l.mu.Unlock()
	signal(l.wake)
}

func (l *Log) put(p []byte) {
	l.mu.taken += uint64(len(p))
	if d := &l.mu.drops; d.bytes > 0 {
		// A dropped line is dropped to its end.
		if d.midLine {
			end := bytes.IndexByte(p, '\n') + 1
			if end == 0 {
				l.drop(p)
				return
			}
			l.drop(p[:end])
			p = p[end:]
		}
		if len(l.mu.fill) > bufferSize/2 {
			l.drop(p)
			return
		}
		l.note()
	}
	room := bufferSize - noteSize - len(l.mu.fill)
	if len(p) <= room {
		l.keep(p)
		return
	}
	end := bytes.LastIndexByte(p[:max(room, 0)], '\n') + 1
	l.keep(p[:end])
	l.mu.drops.torn = l.mu.midLine
	l.drop(p[end:])
}

// keep adds p to the buffer.
func (l *Log) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	// Two sizes, so that growth leaves little garbage.
	if need := len(l.mu.fill) + len(p); need > cap(l.mu.fill) {
		size := bufferSize + noteSize
		if need <= idleBuffer {
			size = idleBuffer
		}
		l.mu.fill = append(make([]byte, 0, size), l.mu.fill...)
	}
	l.mu.fill = append(l.mu.fill, p...)
	l.mu.midLine = p[len(p)-1] != '\n'
}

// drop counts p as dropped.
func (l *Log) drop(p []byte) {
	d := &l.mu.drops
	if len(p) == 0 {
		return
	}
	if l.mu.failure != nil {
		d.why = l.mu.failure
	}
	lines := uint64(bytes.Count(p, []byte("\n")))
	d.bytes += uint64(len(p))
	d.lines += lines
	l.mu.total.bytes += uint64(len(p))
	l.mu.total.lines += lines
	d.midLine = p[len(p)-1] != '\n'
}

// note adds the line that states what was dropped.
func (l *Log) note() {
	d := l.mu.drops
	if d.bytes == 0 {
		return
	}
	if d.torn {
		l.keep([]byte("\n"))
	}
	why := errSlow
	if d.why != nil {
		why = d.why
		var errno syscall.Errno
		if errors.As(why, &errno) {
			why = errno
		}
	}
	lines := d.lines
	if d.midLine {
		lines++
	}
	text := fmt.Appendf(nil, "nodedrain: %d lines (%d bytes) of this log were dropped: %v", lines, d.bytes, why)
	l.keep(append(text[:min(len(text), noteSize-2)], '\n'))
	l.mu.drops = drops{}
}

// run writes what Put takes, until the log closes.
func (l *Log) run() {
	defer close(l.ended)
	var out []byte
	for {
		l.mu.Lock()
		if len(l.mu.fill) == 0 && (l.mu.closing || !l.mu.drops.midLine) {
			l.note()
		}
		out, l.mu.fill = l.mu.fill, out[:0]
		taken, closing := l.mu.taken, l.mu.closing
		l.mu.Unlock()
		switch {
		case len(out) > 0:
			if left := l.write(out); left > 0 {
				l.lose(out[len(out)-left:])
				return
			}
		case closing:
			return
		}
		l.mu.Lock()
		l.mu.written = taken
		idle := len(out) == 0
		if idle && cap(l.mu.fill) > idleBuffer && len(l.mu.fill) == 0 {
			l.mu.fill = nil
		}
		l.mu.Unlock()
		signal(l.wrote)
		if idle {
			if cap(out) > idleBuffer {
				out = nil
			}
			<-l.wake
		}
	}
}

// write writes p and tries again after errors. It returns how many bytes it gave up.
func (l *Log) write(p []byte) (left int) {
	moved := false
	for {
		n, err := l.writer.Append(p)
		p = p[n:]
		l.fail(err)
		if err == nil {
			return 0
		}
		if noRoom := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT); !noRoom && !moved {
			// The file may be damaged. More than one attempt would rotate the whole log away.
			moved = l.writer.rotate() == nil
		}
		retry := time.NewTimer(retryAfter)
		select {
		case <-retry.C:
		case <-l.giveUp.Done():
			retry.Stop()
			return len(p)
		}
	}
}

// fail keeps the answer to a write, as the reason of drops.
func (l *Log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.failure = err
	if err != nil || l.mu.drops.bytes == 0 {
		l.mu.drops.why = err
	}
}

// lose counts what the log gave up when it closed.
func (l *Log) lose(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(p)
	l.drop(l.mu.fill)
	l.mu.fill = nil
}

// await waits until everything that Put took is done with, for a short time at most. It reports
// whether it is. The timer is stopped before and after.
func (l *Log) await(timer *time.Timer, atMost time.Duration) bool {
	if l.idle() || atMost == 0 {
		return l.idle()
	}
	timer.Reset(atMost)
	defer timer.Stop()
	for {
		select {
		case <-l.wrote:
			if l.idle() {
				return true
			}
		case <-timer.C:
			return l.idle()
		}
	}
}

func (l *Log) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.written == l.mu.taken
}

// Dropped returns how many lines and bytes were dropped since the start of the log.
func (l *Log) Dropped() (lines, size uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.total.lines, l.mu.total.bytes
}

// Close writes what the buffer has, and ends the goroutine. If the context ends first, Close gives up
// waiting for room on the disk, and returns an error that states how much it lost. A write that does
// not return is left behind: it keeps its goroutine and the file. Put must not run, and must not be
// called again.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.mu.closing = true
	before := l.mu.total.bytes
	l.mu.Unlock()
	signal(l.wake)
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.endWaits()
		grace := time.NewTimer(patience)
		defer grace.Stop()
		select {
		case <-l.ended:
		case <-grace.C:
			return fmt.Errorf("log %s: the disk does not answer a write: %w", l.writer.name, context.Cause(ctx))
		}
	}
	l.endWaits()
	closed := l.writer.Close()
	if _, lost := l.Dropped(); lost > before {
		return fmt.Errorf("log %s: the last %d bytes are lost: %w", l.writer.name, lost-before, l.lastFailure())
	}
	return closed
}

func (l *Log) lastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.failure
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
