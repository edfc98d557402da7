package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The record of a running allocation whose group migrates its data is damaged or missing. Bug: the client removed the
// data, and the task started again with an empty disk.
func TestNode_dataWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"damaged": func(path string) error { return os.Truncate(path, 10) },
		"missing": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
			w.begin()
			w.awaitMock()
			w.give(2, w.disk("a1", ""))
			w.awaitStatus("a1", cluster.ClientRunning)
			data := w.path("a1", filepath.Join("alloc", "data", "file"))
			must.NoError(t, os.WriteFile(data, []byte("data"), 0o600))
			w.stop()
			records := filepath.Join(w.config.DataDir, recordsDir)
			files, err := filepath.Glob(filepath.Join(records, "*a1*"))
			must.NoError(t, err)
			must.SliceLen(t, 1, files)
			must.NoError(t, lose(files[0]))

			w.servers.set(func() { clear(w.servers.reported) })
			w.begin()
			again := w.disk("a1", "")
			again.ClientStatus = cluster.ClientRunning
			w.give(3, again)
			w.awaitStatus("a1", cluster.ClientRunning)
			content, err := os.ReadFile(data)
			must.NoError(t, err)
			must.EqOp(t, "data", string(content))
			w.stop()

			w.begin() // it removes the damaged record, and goes on with the new one
			w.stop()
			store, err := record.OpenDisk(records)
			must.NoError(t, err)
			_, damaged, err := store.All()
			must.NoError(t, err)
			must.SliceEmpty(t, damaged)
			must.FileExists(t, data)
		})
	}
}
