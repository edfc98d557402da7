package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds on what the other end may send.
const (
	// maxPings is how many pings the other end may send in one pingInterval. It sends one, and answers those
	// of this end: see [ServerEnd.Answers].
	maxPings = 64
	// maxFrame bounds the data of a frame, in bytes. It is the window of a stream, so no end of yamux sends
	// more. yamux reads a longer frame of an unknown stream to its end.
	maxFrame = 256 << 10
	// frameHeader is the size of the header of a frame, in bytes. The second byte is the type, the last
	// four are the length of data.
	frameHeader = 12
	frameData   = 0
	framePing   = 2
)

// Errors that end a session.
var (
	// errPings: yamux starts a goroutine for each ping.
	errPings = errors.New("protocol error: the other end sends too many pings")
	errFrame = errors.New("protocol error: the other end sends a frame that is longer than the window of a stream")
)

// guard is the connection of a session, whose frames it checks. One goroutine reads from it.
type guard struct {
	io.ReadWriteCloser
	header [frameHeader]byte
	have   int       // bytes of the header that were read
	skip   uint32    // bytes of data that are left of the frame
	pings  int       // since began
	began  time.Time // of the interval of pings
}

// Read reads from the connection. A protocol error ends the session.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(p)
	if err := g.check(p[:n]); err != nil {
		return 0, err
	}
	return n, err
}

// check returns an error if what was read has too many pings, or the header of a frame that is too long.
func (g *guard) check(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			part := min(g.skip, uint32(len(b)))
			g.skip -= part
			b = b[part:]
			continue
		}
		part := copy(g.header[g.have:], b)
		g.have += part
		b = b[part:]
		if g.have < frameHeader {
			return nil
		}
		g.have = 0
		switch g.header[1] {
		case frameData:
			if g.skip = binary.BigEndian.Uint32(g.header[8:]); g.skip > maxFrame {
				return fmt.Errorf("%w: %d bytes", errFrame, g.skip)
			}
		case framePing:
			if now := time.Now(); now.Sub(g.began) > pingInterval {
				g.began, g.pings = now, 0
			}
			if g.pings++; g.pings > maxPings {
				return errPings
			}
		}
	}
	return nil
}
