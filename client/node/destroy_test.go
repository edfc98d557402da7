package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Destroy removes everything that a client has left: tasks, drivers and folders. With force a task
// that needs an hour to stop is killed at once. Bug: of folders that are symbolic links only the links were removed.
func TestDestroy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task         string
		force, links bool
	}{
		"nothing":      {},
		"with grace":   {task: `{}`},
		"by force":     {task: `{"stop_ignore": true}`, force: true},
		"behind links": {links: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
			w.config.Limits.MaxKillTimeout = 2 * time.Hour
			if c.links {
				putBehindLinks(w)
			}
			w.begin()
			w.awaitMock()
			if c.task != "" {
				alloc := w.alloc("a", c.task)
				if c.force {
					alloc.Job.TaskGroups[0].Tasks[0].KillTimeout = time.Hour
				}
				w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{alloc}}
				w.awaitStatus("a", cluster.ClientRunning)
			}
			w.stop()
			driver, folders := w.kept()["mock"].Process.Process, w.folders()

			must.NoError(t, Destroy(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, c.force))
			alive, err := driver.Alive()
			must.NoError(t, err)
			must.False(t, alive)
			for _, folder := range folders {
				_, err = os.Lstat(folder)
				must.ErrorIs(t, err, os.ErrNotExist)
			}
			must.NoError(t, os.MkdirAll(w.config.DataDir, 0o700)) // the test reads the records of plugins there
		})
	}
}

// Destroy returns when its context ends, and names what is left.
func TestDestroy_givesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.config.Limits.MaxKillTimeout = 2 * time.Hour
	w.begin()
	w.awaitMock()
	alloc := w.alloc("a", `{"stop_ignore": true}`)
	alloc.Job.TaskGroups[0].Tasks[0].KillTimeout = time.Hour
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{alloc}}
	w.awaitStatus("a", cluster.ClientRunning)
	w.stop()

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	must.ErrorContains(t, Destroy(ctx, Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, false), "allocations are left: a")
}

// Bug: the check for mounted volumes did not follow a data directory that is a symbolic link, and the files of a volume
// would have been removed with the directory. Something is mounted at /proc.
func TestNothingMounted_symbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, nothingMounted(dir))
	for name, mounted := range map[string]string{"a-mount": "/proc", "above-mounts": "/"} {
		link := filepath.Join(dir, name)
		must.NoError(t, os.Symlink(mounted, link))
		must.ErrorContains(t, nothingMounted(link), link+" is not removed, because volumes are mounted below it")
	}
}
