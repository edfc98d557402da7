package disks_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/disks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A new client removes what the one before it has received, and keeps what is complete and must be placed. Bug: it
// removed that too. The task started without data, the move counted as copied, and the other node removed its data.
func TestRemoveIncoming(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record client.Record
		stays  bool
	}{
		"received":                     {client.Record{DataIn: &client.DataIn{State: client.DataInReceived}}, true},
		"received, and it has ended":   {client.Record{DataIn: &client.DataIn{State: client.DataInReceived}, Ended: true}, false},
		"a part of it":                 {client.Record{DataIn: &client.DataIn{State: client.DataInCopying}}, false},
		"nothing was reported to come": {client.Record{DataIn: &client.DataIn{State: client.DataInWaiting}}, false},
		"placed":                       {client.Record{DataIn: &client.DataIn{State: client.DataInPlaced}}, false},
		"given up":                     {client.Record{DataIn: &client.DataIn{State: client.DataInGivenUp}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folders, err := allocdir.Open(t.TempDir())
			must.NoError(t, err)
			t.Cleanup(func() { must.NoError(t, folders.Close()) })
			must.NoError(t, folders.Build("r", nil))
			into, err := folders.MakeIncoming(t.Context(), "r")
			must.NoError(t, err)
			arrived := filepath.Join(into.Name(), "data")
			must.NoError(t, into.Close())
			must.NoError(t, os.WriteFile(arrived, []byte("data"), 0o600))
			c.record.Alloc = &cluster.Allocation{ID: "r"}
			must.NoError(t, disks.RemoveIncoming(t.Context(), folders, []*client.Record{&c.record}))
			_, err = os.Stat(arrived)
			must.EqOp(t, c.stays, err == nil)
		})
	}
}
