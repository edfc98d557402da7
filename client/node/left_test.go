package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// unrecorded returns the processes of the node that no record names, or "". Each log keeper, shim, task and
// watchdog below the folders of the node must belong to an allocation that has not ended, and each plugin must
// have a record. It waits for processes that are about to end.
func unrecorded(w *world) (left string) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C { // the machine may be busy
		if left = unrecordedNow(w); left == "" || time.Now().After(deadline) {
			return left
		}
	}
}

func unrecordedNow(w *world) (left string) {
	store, err := record.OpenDisk(filepath.Join(w.config.DataDir, recordsDir))
	must.NoError(w, err)
	records, err := readRecords(store)
	must.NoError(w, err)
	var plugins []int
	for _, r := range records.plugins { //lint:order a set
		plugins = append(plugins, r.Process.Process.PID)
	}
	live := map[string]bool{}
	for _, r := range records.allocs {
		live[pathname.Encode(string(r.Alloc.ID))] = !r.Ended
	}
	found, err := filepath.Glob("/proc/[0-9]*")
	must.NoError(w, err)
	for _, proc := range found {
		pid, err := strconv.Atoi(filepath.Base(proc))
		must.NoError(w, err)
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline")) // a process may be gone
		env, _ := os.ReadFile(filepath.Join(proc, "environ"))
		at, _ := os.Readlink(filepath.Join(proc, "cwd"))
		words := strings.Split(string(line)+string(env)+at, "\x00")
		ours := slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(w.folders(), func(folder string) bool { return strings.Contains(word, folder) })
		})
		of := slices.ContainsFunc(words, func(word string) bool {
			for folder, lives := range live { //lint:order a set
				if lives && strings.Contains(word+"/", "/"+allocsDir+"/"+folder+"/") {
					return true
				}
			}
			return false
		})
		if ours && !of && pid != os.Getpid() && !slices.Contains(plugins, pid) {
			left += fmt.Sprintf("%d: %q\n", pid, strings.Split(string(line), "\x00"))
		}
	}
	return left
}

// folders returns the folders of the node, with and without the links in their paths.
func (w *world) folders() []string {
	all := []string{w.config.DataDir, w.config.RunDir}
	for _, folder := range all {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			all = append(all, real)
		}
	}
	return all
}

// real returns a path without links.
func real(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	must.NoError(t, err)
	return path
}

// putBehindLinks puts the folders of the node behind symbolic links.
func putBehindLinks(w *world) {
	w.Helper()
	var err error
	w.links, err = os.MkdirTemp("", "nd") // the paths of sockets must be short
	must.NoError(w, err)
	for i, folder := range []*string{&w.config.DataDir, &w.config.RunDir, &w.config.PluginDir} {
		if *folder == "" {
			continue
		}
		must.NoError(w, os.MkdirAll(*folder, homeMode))
		link := filepath.Join(w.links, fmt.Sprint("a ", i))
		must.NoError(w, os.Symlink(*folder, link))
		*folder = link
	}
}

// A client ends between the start of a log keeper and the handle of the task. The next client cleans up, and
// ends the keeper, which it has not started. Bug: no test ended a log keeper of an earlier client.
func TestNode_logKeeperOfAStartWithoutAHandle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	w.awaitMock()
	alloc := w.alloc("a", `{"start_block_for": "1h"}`)
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{alloc.Copy()}}
	logs := w.node.shell.tasks.logs
	w.eventually("the client has the log keeper", func() bool {
		logs.mu.Lock()
		defer logs.mu.Unlock()
		return len(logs.kept) == 1
	})
	w.stop()
	w.killPlugins() // its call would end in an hour
	must.SliceLen(t, 1, w.keepers())
	w.begin()
	alloc.DesiredStatus, alloc.AllocModifyIndex = cluster.DesiredStop, 3
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{alloc}}
	w.await(func(s *scripted) bool {
		status := s.reported["a"].ClientStatus
		return status == cluster.ClientComplete || status == cluster.ClientFailed
	})
	must.SliceEmpty(t, w.keepers())
	w.stop()
}
