package session

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hashicorp/yamux"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// frame is a frame of yamux.
func frame(kind byte, length int, data []byte) []byte {
	return append([]byte{0, kind, 0, 1, 0, 0, 0, 2, byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)}, data...)
}

// Only frames count as pings, and not data with the bytes of pings. The size of the parts does not matter.
func TestGuard(t *testing.T) {
	t.Parallel()
	ping := frame(framePing, 7, nil)
	bytesOfPings := frame(frameData, 120*frameHeader, bytes.Repeat(ping, 120))
	windows := bytes.Repeat(frame(1, 500, nil), 1000)
	few := bytes.Repeat(ping, maxPings)
	for name, c := range map[string]struct {
		bytes   []byte
		refused error
	}{
		"data":                  {bytesOfPings, nil},
		"windows":               {windows, nil},
		"few pings":             {append(few, bytesOfPings...), nil},
		"many pings":            {append(append(bytesOfPings, few...), ping...), errPings},
		"a half header":         {ping[:5], nil},
		"a frame of one window": {frame(frameData, maxFrame, nil), nil},
		// Bug: a frame of an unknown stream kept the server reading 4 GiB.
		"a longer frame":       {frame(frameData, maxFrame+1, nil), errFrame},
		"the longest frame":    {append(bytesOfPings, frame(frameData, 1<<32-1, nil)...), errFrame},
		"a window of any size": {frame(1, 1<<32-1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 12, 13, 4096} {
				must.ErrorIs(t, inParts(c.bytes, size), c.refused, must.Sprint(size))
			}
		})
	}
}

// A node that floods its server with pings loses the session.
func TestGuard_session(t *testing.T) {
	t.Parallel()
	a, b := tcp(t)
	p := newPair(t, a, b, defaultTimes(), hello)
	for range maxPings + 1 {
		if _, err := p.node.mux.Ping(); err != nil {
			must.ErrorIs(t, err, yamux.ErrSessionShutdown)
			break
		}
	}
	within(t, p.server.Done(), "the server's end")
}

// FuzzGuard: the guard panics for no bytes, and the size of their parts does not matter.
func FuzzGuard(f *testing.F) {
	f.Add(frame(framePing, 7, nil), 3)
	f.Add(frame(frameData, 2, []byte{1, 2}), 5)
	f.Add(bytes.Repeat(frame(framePing, 1, nil), maxPings+1), 11)
	f.Fuzz(func(t *testing.T, all []byte, size int) {
		size = max(1, min(size, 100))
		must.Eq(t, fmt.Sprint(new(guard).check(all)), fmt.Sprint(inParts(all, size)))
	})
}

// inParts checks bytes that are read in parts.
func inParts(all []byte, size int) error {
	g := new(guard)
	for rest := all; len(rest) > 0; {
		part := min(size, len(rest))
		if err := g.check(rest[:part]); err != nil {
			return err
		}
		rest = rest[part:]
	}
	return nil
}

// A node that sends the header of a frame that no window permits loses the session at once. Bug: the server
// read 2.3 GB of such a frame in five seconds.
func TestGuard_longFrame(t *testing.T) {
	t.Parallel()
	a, b := tcp(t)
	p := newPair(t, a, b, defaultTimes(), hello)
	_ = result.Of(a.Write(frame(frameData, 1<<32-1, nil))).OK(t)
	within(t, p.server.Done(), "the server's end")
}
