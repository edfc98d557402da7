package session

import (
	"encoding/binary"
	"errors"
	"net"
	"time"
)

// Bounds on what a node may send beside the bytes of its answers.
const (
	// maxPings is how many pings a node may send in one pingInterval. Its client sends one, and answers the
	// server's.
	maxPings = 64
	// frameHeader is the size of the header of a frame, in bytes. The second byte is the type, the last
	// four are the length of data.
	frameHeader = 12
	frameData   = 0
	framePing   = 2
)

// errPings ends the session of a node that sends too many pings: yamux starts a goroutine for each.
var errPings = errors.New("the node sends too many pings")

// guard is the connection of a session, whose frames it counts. One goroutine reads from it.
type guard struct {
	net.Conn
	header [frameHeader]byte
	have   int       // bytes of the header that were read
	skip   uint32    // bytes of data that are left of the frame
	pings  int       // since began
	began  time.Time // of the interval of pings
}

// Read reads from the connection.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.allow(p[:n]) {
		return 0, errPings
	}
	return n, err
}

// allow counts the pings in what was read, and reports whether they are few enough.
func (g *guard) allow(b []byte) bool {
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
			return true
		}
		g.have = 0
		switch g.header[1] {
		case frameData:
			g.skip = binary.BigEndian.Uint32(g.header[8:])
		case framePing:
			if now := time.Now(); now.Sub(g.began) > pingInterval {
				g.began, g.pings = now, 0
			}
			if g.pings++; g.pings > maxPings {
				return false
			}
		}
	}
	return true
}
