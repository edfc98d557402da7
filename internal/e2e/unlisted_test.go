package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
)

// unlistedSite is a server and one node. Tasks ignore their signal and end when a file exists.
type unlistedSite struct {
	*site
	node string
}

func startUnlisted(t *testing.T) *unlistedSite {
	s := &unlistedSite{site: startSite(t, 0, true)}
	s.begin(s.newNode("n1", true, ""))
	s.await("the node", func() bool {
		n := nodeOf(s.site, "n1")
		if n != nil {
			s.node = n.ID
		}
		return n != nil
	})
	return s
}

// runs registers a job, and waits until its allocation runs and ignores signals.
func (s *unlistedSite) runs(job string) (alloc string) {
	s.t.Helper()
	kind, cpu, memory, timeout := "service", 100, 64, 20*time.Minute
	task := api.NewTask("deaf", "raw_exec").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
	task.KillTimeout = &timeout
	task.Config = s.script(`trap '' TERM INT; : >%[1]s/$NOMAD_ALLOC_ID.traps; while [ ! -e %[1]s/$NOMAD_ALLOC_ID.ends ]; do sleep 0.05; done`)
	_, _, err := s.api.Jobs().Register((&api.Job{ID: &job, Name: &job, Type: &kind, Datacenters: []string{"dc1"}}).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task)), nil)
	must.NoError(s.t, err)
	s.await("the allocation of "+job, func() bool {
		for _, a := range s.allocs(job) {
			alloc = a.ID
		}
		_, err := os.Stat(filepath.Join(s.journal, alloc+".traps"))
		return err == nil && s.knownToRun(job) && s.copies(alloc, "deaf") == 1
	})
	return alloc
}

// operator runs a command of an operator.
func (s *unlistedSite) operator(args ...string) {
	s.t.Helper()
	c := exec.Command(s.binary, args...)
	c.Env = append(os.Environ(), "NOMAD_ADDR="+s.address, "NOMAD_TOKEN="+s.config.SecretID)
	text, err := c.CombinedOutput()
	must.NoError(s.t, err, must.Sprint(string(text)))
}

// drains drains the node, and returns the record of the drain.
func (s *unlistedSite) drains() *wire.Drain {
	s.t.Helper()
	_, err := s.api.Nodes().UpdateDrainOpts(s.node, &api.DrainOptions{DrainSpec: &api.DrainSpec{}}, nil)
	must.NoError(s.t, err)
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(s.node, nil)
		return err == nil && n.DrainStrategy == nil
	})
	return s.drainOf(s.node)
}

// collects purges the node, stops a job, and waits until its lost allocation is collected.
func (s *unlistedSite) collects(job, alloc string) {
	s.t.Helper()
	_, _, err := s.api.Nodes().Purge(s.node, nil)
	must.NoError(s.t, err)
	_, _, err = s.api.Jobs().Deregister(job, false, nil)
	must.NoError(s.t, err)
	s.await("the collection of the allocation", func() bool {
		_ = s.api.System().GarbageCollect() // again, if it came before the end of the evaluations
		_, _, err := s.api.Allocations().Info(alloc, nil)
		return err != nil
	})
}

// drainsBeside drains the node while a task runs that the servers do not list. The count of the record falls
// when the task has ended, and the next drain is complete.
func (s *unlistedSite) drainsBeside(alloc string) {
	s.t.Helper()
	record := s.drains()
	must.Eq(s.t, 1, s.copies(alloc, "deaf"), must.Sprint("the task runs on the machine"))
	must.Eq(s.t, "unconfirmed", record.Outcome)
	must.Eq(s.t, 1, record.Unconfirmed)
	must.Eq(s.t, &wire.UnlistedAllocs{Count: 1, Allocs: []string{alloc}}, record.Unlisted)
	must.NoError(s.t, os.WriteFile(filepath.Join(s.journal, alloc+".ends"), nil, 0o600))
	s.await("the confirmation by the client", func() bool { return s.drainOf(s.node).Unconfirmed == 0 })
	must.Zero(s.t, s.copies(alloc, "deaf"))
	must.Eq(s.t, "complete", s.drains().Outcome)
}

// Bug: a state was restored from before the placement of an allocation, and a drain was complete while the client
// stopped the task.
//
//race:skip its programs do not have the detector
func TestNode_restoredStateWithoutItsAllocation(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	saved := filepath.Join(s.dir, "saved")
	s.operator("operator", "snapshot", "save", saved)
	alloc := s.runs("web")
	s.operator("operator", "snapshot", "restore", "-yes", saved)
	s.await("the report of the client", func() bool {
		var n wire.Node
		_, err := s.api.Raw().Query("/v1/node/"+s.node, &n, nil)
		return err == nil && n.Unlisted != nil && n.Unlisted.Count == 1
	})
	s.drainsBeside(alloc)
	s.end(s.nodes[0])
}

// Bug: a node was purged while it was unreachable, and its lost allocations were collected. It came back with
// the task, and a drain was complete. The test drains the node as soon as the servers have it.
//
//race:skip its programs do not have the detector
func TestNode_purgedAndCollectedWhileAway(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	alloc := s.runs("web")
	frozen.Stop(t, s.nodes[0].client.Process.Pid)
	s.await("the loss of the allocation", func() bool { return !s.knownToRun("web") })
	s.collects("web", alloc)
	must.NoError(t, s.nodes[0].client.Process.Signal(syscall.SIGCONT))
	s.await("the node", func() bool { return nodeOf(s.site, "n1") != nil })
	s.drainsBeside(alloc)
	s.end(s.nodes[0])
}

// loses ends the client of the node, and deletes its records and the folders of its allocations.
func (s *unlistedSite) loses() {
	s.t.Helper()
	s.end(s.nodes[0])
	for _, dir := range []string{"records", "allocs"} {
		must.NoError(s.t, os.RemoveAll(filepath.Join(s.nodes[0].data, dir)))
	}
}

// Bug: records and folders were deleted while the client was down, and the allocations were lost and collected. The
// next client did not find the tasks, and a drain was complete while they ran.
//
//race:skip its programs do not have the detector
func TestNode_recordsAndRowsLost(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	alloc := s.runs("web")
	s.loses()
	s.await("the loss of the allocation", func() bool { return !s.knownToRun("web") })
	s.collects("web", alloc)
	s.begin(s.nodes[0])
	s.await("a ready node", func() bool {
		n, _, err := s.api.Nodes().Info(s.node, nil)
		return err == nil && n.Status == "ready"
	})
	record := s.drains()
	if s.copies(alloc, "deaf") > 0 || record.Outcome != "complete" { // it has the default kill timeout
		must.Eq(t, "unconfirmed", record.Outcome)
		must.Eq(t, &wire.UnlistedAllocs{Count: 1, Allocs: []string{alloc}}, record.Unlisted)
	}
	s.await("the confirmation by the client", func() bool { return s.drainOf(s.node).Unconfirmed == 0 })
	must.Zero(t, s.copies(alloc, "deaf"))
	must.Eq(t, "complete", s.drains().Outcome)
	s.end(s.nodes[0])
}

// Bug: the client was removed from a machine after the loss of its records and folders, and tasks ran on.
//
//race:skip its programs do not have the detector
func TestNode_destroyedWithoutRecords(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	alloc := s.runs("web")
	s.loses()
	must.Eq(t, 1, s.copies(alloc, "deaf"))
	out, err := exec.Command(s.binary, "client", "-config", s.nodes[0].config, "-destroy").CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
	must.SliceEmpty(t, s.ofTasks())
	_, err = os.Stat(s.nodes[0].data)
	must.ErrorIs(t, err, os.ErrNotExist)
}
