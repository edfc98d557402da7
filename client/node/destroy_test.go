package node

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
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

			must.NoError(t, Destroy(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, Removal{NoGrace: c.force}))
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

// Bug: a destroy with force waited for the shutdown delay of each task. Records may lack a job, a group and a task.
func TestHasten(t *testing.T) {
	t.Parallel()
	task := &cluster.Task{Name: "t", KillTimeout: time.Hour, ShutdownDelay: time.Hour}
	group := &cluster.TaskGroup{Name: "g", ShutdownDelay: time.Hour, Tasks: []*cluster.Task{nil, task}}
	hasten([]*client.Record{
		{Alloc: &cluster.Allocation{ID: "a"}},
		{Alloc: &cluster.Allocation{ID: "b", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{nil, group}}}},
	})
	must.Eq(t, &cluster.TaskGroup{Name: "g", Tasks: []*cluster.Task{nil, {Name: "t"}}}, group)
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
	must.ErrorContains(t, Destroy(ctx, Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, Removal{}), "allocations are left: a")
}

// Bug: the check for mounted volumes did not follow a data directory that is a symbolic link, and the files of a volume
// would have been removed with the directory. Something is mounted at /proc.
func TestNothingMounted_symbolicLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, nothingMounted(dir))
	link := filepath.Join(dir, "above-mounts")
	must.NoError(t, os.Symlink("/", link))
	must.ErrorContains(t, nothingMounted(link), link+" is not removed, because volumes are mounted below it")
}

// The data directory and the folder of the sockets are file systems of their own. Bug: Destroy refused, because of
// "volumes mounted below it". It still refuses if another one is mounted below.
func TestDestroy_ofMounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	must.NoError(t, os.Mkdir(w.config.DataDir, homeMode))
	tmpfs.Mount(t, w.config.DataDir, "mode=700")
	tmpfs.Mount(t, w.config.RunDir, "mode=700")
	w.begin()
	w.awaitMock()
	w.stop()
	destroy := func() error {
		return Destroy(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, Removal{})
	}
	below := filepath.Join(w.config.DataDir, "below")
	must.NoError(t, os.Mkdir(below, 0o700))
	must.NoError(t, syscall.Mount("tmpfs", below, "tmpfs", 0, ""))
	must.ErrorContains(t, destroy(), "volumes are mounted below it; unmount them first: "+real(t, below))
	must.NoError(t, syscall.Unmount(below, 0))

	must.NoError(t, destroy())
	for _, dir := range []string{w.config.DataDir, w.config.RunDir} {
		left, err := os.ReadDir(dir)
		must.NoError(t, err)
		must.SliceEmpty(t, left)
	}
}

// An ended allocation keeps the only copy of data that moves. Bug: Destroy removed it without a word.
func TestDestroy_keptData(t *testing.T) {
	t.Parallel()
	w := newSource(t)
	w.stop()
	destroy := func(r Removal) error {
		return Destroy(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, r)
	}
	must.ErrorContains(t, destroy(Removal{NoGrace: true}), "is not removed, because by its records it has the only copy of the data of ended allocations, for which a replacement waits: p; ")
	must.FileExists(t, w.path("p", "alloc/data/deep/big"))
	must.NoError(t, destroy(Removal{KeptData: true}))
	must.FileNotExists(t, w.path("p", "alloc/data/deep/big"))
	must.NoError(t, os.MkdirAll(w.config.DataDir, 0o700)) // the test reads the records of plugins there
}

// The error about kept data names a limited number of allocations, and no others.
func TestNoDataWaits(t *testing.T) {
	t.Parallel()
	of := func(id string, ended bool, out *client.DataOut) *client.Record {
		return &client.Record{Alloc: &cluster.Allocation{ID: cluster.AllocID(id)}, Ended: ended, DataOut: out}
	}
	kept := &client.DataOut{State: cluster.DataKept}
	records := []*client.Record{
		of("runs", false, nil), of("ended", true, nil), of("copied", true, &client.DataOut{State: cluster.DataCopied}),
		of("lost", true, &client.DataOut{State: cluster.DataKept, Lost: true}),
	}
	must.NoError(t, noDataWaits("/data", records))
	must.ErrorContains(t, noDataWaits("/data", append(records, of("a", true, kept), of("b", true, kept))), "a replacement waits: a, b; start the client")
	for range maxWaiting + 2 {
		records = append(records, of("c", true, kept))
	}
	must.ErrorContains(t, noDataWaits("/data", records), "c, c and 2 more; ")
}
