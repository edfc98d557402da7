package session

import (
	"io"
	"log"
	"time"

	"github.com/hashicorp/yamux"
)

// Protocol names the protocol and its version in the header Upgrade.
const Protocol = "nodedrain-session/1"

// ProcessHeader is the header with the id of a client's process. A client chooses the id at its start, and
// sends it with registrations, heartbeats and requests for a session. A client of an older release sends none.
const ProcessHeader = "X-Nodedrain-Process"

// MaxStreams bounds the open streams of one session. Each may hold 256 KiB that its reader has not
// taken.
const MaxStreams = 2048

// Bounds of a session.
const (
	// handshakeTime is for the request of an upgrade and its answer.
	handshakeTime = 10 * time.Second
	// pingInterval is the time between two signs of life. pingTimeout is how long the other end may take
	// to answer one, and how long a write may wait for the connection.
	pingInterval = 15 * time.Second
	pingTimeout  = 10 * time.Second
	// stallTime is how long a stream may wait for its reader.
	stallTime = time.Minute
	// headerTime and maxHeader bound the header of a request or an answer in a stream.
	headerTime = 10 * time.Second
	maxHeader  = 64 << 10
	// serverLinger and nodeLinger are how long a stream that one end has closed waits for the other end.
	// The server closes a stream when it needs no more. The node closes a stream when its answer is
	// complete, and the server may still read it.
	serverLinger = 2 * time.Second
	nodeLinger   = 10 * time.Minute
)

// times are the bounds that tests shorten.
type times struct{ ping, pingTimeout, stall time.Duration }

func defaultTimes() times {
	return times{ping: pingInterval, pingTimeout: pingTimeout, stall: stallTime}
}

// settings are the settings of yamux.
func (t times) settings(linger time.Duration) *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = 256
	c.KeepAliveInterval = t.ping
	c.ConnectionWriteTimeout = t.pingTimeout
	c.StreamOpenTimeout = t.ping + t.pingTimeout
	c.StreamCloseTimeout = linger
	// The other end decides how many lines yamux logs. Both ends report the end of a session themselves.
	c.LogOutput, c.Logger = nil, log.New(io.Discard, "", 0)
	return c
}
