package session

import (
	"bytes"
	"testing"

	"github.com/hashicorp/yamux"
	"github.com/shoenig/test/must"
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
		bytes []byte
		allow bool
	}{
		"data":          {bytesOfPings, true},
		"windows":       {windows, true},
		"few pings":     {append(few, bytesOfPings...), true},
		"many pings":    {append(append(bytesOfPings, few...), ping...), false},
		"a half header": {ping[:5], true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, 12, 13, 4096} {
				g, allow := new(guard), true
				for rest := c.bytes; len(rest) > 0 && allow; {
					part := min(size, len(rest))
					allow = g.allow(rest[:part])
					rest = rest[part:]
				}
				must.Eq(t, c.allow, allow, must.Sprint(size))
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
		whole, parts := new(guard).allow(all), true
		g := new(guard)
		for rest := all; len(rest) > 0 && parts; {
			part := min(size, len(rest))
			parts = g.allow(rest[:part])
			rest = rest[part:]
		}
		must.Eq(t, whole, parts)
	})
}
