package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

// registerAwaited registers a job of one allocation that the servers await for an hour. It waits until the
// cluster has the version of the whole block.
func registerAwaited(s *site, id string, replace bool) {
	s.t.Helper()
	kind, lostAfter, keep, one, quick, long := "service", time.Hour, "keep_original", 1, 100*time.Millisecond, time.Minute
	group := api.NewTaskGroup("g", 1).AddTask(rawExec("obeys", s.script(obeys)))
	group.Disconnect = &api.DisconnectStrategy{LostAfter: &lostAfter, Replace: &replace, Reconcile: &keep}
	group.Migrate = &api.MigrateStrategy{MaxParallel: &one, MinHealthyTime: &quick, HealthyDeadline: &long}
	s.await("the registration of "+id, func() bool {
		answer, _, err := s.api.Jobs().Register((&api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}).AddTaskGroup(group), nil)
		return err == nil && answer.Warnings == ""
	})
}

// nodeOf returns a node by its name, or nil.
func nodeOf(s *site, name string) *api.NodeListStub {
	nodes, _, err := s.api.Nodes().List(nil)
	if at := slices.IndexFunc(nodes, func(n *api.NodeListStub) bool { return n.Name == name }); err == nil && at >= 0 {
		return nodes[at]
	}
	return nil
}

// awaitStatus waits until an allocation has a client status.
func awaitStatus(s *site, alloc, status string) {
	s.t.Helper()
	s.await(alloc+" "+status, func() bool {
		a, _, err := s.api.Allocations().Info(alloc, nil)
		return err == nil && a.ClientStatus == status
	})
}

// freeze stops the client of a node and waits until the servers have an allocation on it as unknown. The
// result continues the client.
func freeze(s *site, n *realNode, alloc string) (thaw func()) {
	s.t.Helper()
	process := n.client.Process
	must.NoError(s.t, process.Signal(syscall.SIGSTOP))
	s.t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) })
	s.await(n.name+" disconnected", func() bool {
		node := nodeOf(s, n.name)
		return node != nil && node.Status == "disconnected"
	})
	awaitStatus(s, alloc, "unknown")
	return func() { must.NoError(s.t, process.Signal(syscall.SIGCONT)) }
}

// replacementOf waits until the replacement of an allocation runs, and returns it.
func replacementOf(s *site, alloc string) (id string) {
	s.t.Helper()
	s.await("the replacement", func() bool {
		a, _, err := s.api.Allocations().Info(alloc, nil)
		if err == nil {
			id = a.NextAllocation
		}
		return err == nil && id != "" && s.copies(id, "obeys") == 1
	})
	awaitStatus(s, id, "running")
	return id
}

// Bug: LostAfter had no effect. The node of a frozen client was down, its allocations were lost, and after
// the thaw the healthy originals were stopped. A second copy ran of the job that must not be replaced. Now
// the original is kept. If its node drains, the replacement is kept, and the drain ends complete.
//
//race:skip its programs do not have the detector
func TestNode_disconnected(t *testing.T) {
	t.Parallel()
	s := startQuick(t, 2*time.Second)
	n1 := s.newNode("n1", true, "")
	s.begin(n1)
	registerAwaited(s, "web", true)
	registerAwaited(s, "alone", false)
	original, alone := s.running("web", 1)[0].ID, s.running("alone", 1)[0].ID
	s.begin(s.newNode("n2", true, ""))
	s.await("the second node", func() bool { return nodeOf(s, "n2") != nil })

	thaw := freeze(s, n1, original)
	awaitStatus(s, alone, "unknown")
	replacement := replacementOf(s, original)
	thaw()
	awaitStatus(s, replacement, "complete")
	for _, id := range []string{original, alone} {
		awaitStatus(s, id, "running")
		must.Eq(t, 1, s.copies(id, "obeys"))
		must.SliceLen(t, 1, s.noted(id, "obeys", "start"))
		must.SliceEmpty(t, s.noted(id, "obeys", "term"))
	}
	must.Zero(t, s.copies(replacement, "obeys"))
	must.SliceLen(t, 1, s.allocs("alone"))

	node := nodeOf(s, "n1").ID
	thaw = freeze(s, n1, alone)
	_, err := s.api.Nodes().UpdateDrainOpts(node, &api.DrainOptions{DrainSpec: &api.DrainSpec{}}, nil)
	must.NoError(t, err)
	must.Eq(t, 1, s.copies(alone, "obeys"))
	thaw()
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(node, nil)
		return err == nil && n.DrainStrategy == nil
	})
	must.Eq(t, "complete", s.drainOf(node).Outcome)
	must.Zero(t, s.copies(original, "obeys")+s.copies(alone, "obeys"))
	for _, job := range []string{"web", "alone"} {
		must.Eq(t, "n2", s.running(job, 1)[0].NodeName)
	}
	for _, n := range s.nodes {
		s.end(n)
	}
}
