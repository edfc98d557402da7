package agent

import (
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"
)

// Regression: Stop waited without end for raft's pipeline, whose two goroutines waited for each other.
func TestNewRaftTransport_hasNoPipeline(t *testing.T) {
	t.Parallel()
	transport := newRaftTransport(&port{raft: newProtocolListener("127.0.0.1:1")}, hclog.NewNullLogger())
	_, err := transport.AppendEntriesPipeline("peer", "127.0.0.1:2")
	must.ErrorIs(t, err, raft.ErrPipelineReplicationNotSupported)
}
