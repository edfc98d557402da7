package session

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stream is a stream of a session. A write that waits for the reader for too long fails.
type stream struct {
	net.Conn
	stall time.Duration
	// free gives the place of the stream back. It is called once.
	free func()
	// closed means that this end has closed the stream. yamux would still deliver what the other end sends.
	closed atomic.Bool

	mu    sync.Mutex
	limit time.Time // what the owner has set for writes, or zero; guarded by mu
}

func newStream(conn net.Conn, stall time.Duration, free func()) *stream {
	return &stream{Conn: conn, stall: stall, free: sync.OnceFunc(free)}
}

// Read reads from the stream until this end closes it.
func (s *stream) Read(p []byte) (int, error) {
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Read(p)
	if s.closed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// maxWrite is how many bytes have one limit of time.
const maxWrite = 32 << 10

// Write writes to the stream, and waits for its reader.
func (s *stream) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), maxWrite)]
		if err := s.begin(); err != nil {
			return written, err
		}
		n, err := s.Conn.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// begin sets the time by which the next bytes must be written. It fails if that time is over: yamux checks
// it only when it waits.
func (s *stream) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	at := now.Add(s.stall)
	if !s.limit.IsZero() && s.limit.Before(at) {
		at = s.limit
	}
	if at.Before(now) {
		return os.ErrDeadlineExceeded
	}
	return s.Conn.SetWriteDeadline(at)
}

// SetDeadline sets both deadlines.
func (s *stream) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetWriteDeadline sets the time by which writes must end, beside the limit of a stalled stream.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = t
	return s.Conn.SetWriteDeadline(t)
}

// Close closes the stream, and ends reads and writes that wait.
func (s *stream) Close() error {
	defer s.free()
	s.closed.Store(true)
	_ = s.Conn.SetDeadline(time.Unix(1, 0)) // a stream of yamux never refuses
	return s.Conn.Close()
}
