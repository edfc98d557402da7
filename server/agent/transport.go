package agent

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// newRaftTransport returns the transport of raft over the port p.
//
// The leader sends a follower one request at a time. Raft's pipeline would send the next one before
// the response, but raft 1.8.0 has a deadlock there: if the reader of responses ends while a request
// waits for room, neither goroutine closes the pipeline. Replication to this follower then stops, and
// so does the shutdown of raft. A request carries up to 64 entries, so that writers beside each other
// share a round trip.
func newRaftTransport(p *port, logger hclog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream{protocolListener: p.raft, port: p}, MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 10 * time.Second,
		Logger: logger, MsgpackUseNewTimeFormat: true,
	})
}

// stream connects raft with a port.
type stream struct {
	*protocolListener
	port *port
}

var _ raft.StreamLayer = stream{}

// Close closes the whole port. Raft is the last user of the port, and would otherwise wait for peers
// that do not answer.
func (s stream) Close() error { return s.port.close() }

// Dial connects to raft on a peer.
func (s stream) Dial(peer raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.port.dial(ctx, string(peer), protocolRaft)
}
