package agent_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// The disk of the only server is full, so it loses its leadership at each write. Bug: its answers stated only that
// there is no leader.
func TestAgent_fullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	tmpfs.Mount(t, small, "size=4m,mode=700")
	a := start(t, agent.Config{Name: "s1", DataDir: filepath.Join(small, "data"), BootstrapExpect: 1, LeaderWait: 10 * time.Millisecond})
	ready(t, a)
	c := api(t, a)
	register(t, c, testNode(0))
	fill := filepath.Join(small, "fill")
	f, err := os.Create(fill)
	must.NoError(t, err)
	_, err = io.Copy(f, neverEnds{})
	must.ErrorContains(t, err, "no space left on device")
	must.NoError(t, f.Close())

	const full = "server s1 cannot write its log: no space left on device"
	big := testNode(1)
	big.Attributes = map[string]string{}
	for i := range 100 {
		big.Attributes[fmt.Sprint("x", i)] = strings.Repeat("x", 1000) // more than the file of the log has free
	}
	eventually(t, "a write is refused because of the disk", func() bool {
		_, err := c.Register(t.Context(), big)
		return apiclient.WhyNoLeader(err) == full
	})
	eventually(t, "a read has the reason", func() bool {
		_, _, err := c.Nodes(t.Context(), apiclient.NodesQuery{})
		return apiclient.NoLeader(err) && apiclient.WhyNoLeader(err) == full
	})
	must.NoError(t, os.Remove(fill))
	register(t, c, big)
	eventually(t, "a read has both nodes", func() bool {
		nodes, _, err := c.Nodes(t.Context(), apiclient.NodesQuery{})
		return err == nil && len(nodes) == 2
	})
}

// neverEnds is a file without an end.
type neverEnds struct{}

func (neverEnds) Read(into []byte) (int, error) { return len(into), nil }
