package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
)

// endServer sends SIGTERM to the server, and waits for its end.
func (s *unlistedSite) endServer() {
	s.t.Helper()
	must.NoError(s.t, s.server.Process.Signal(syscall.SIGTERM))
	must.NoError(s.t, s.server.Wait())
}

// copyOf copies the data directory of the server, which does not run.
func (s *unlistedSite) copyOf(from, to string) {
	s.t.Helper()
	must.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, to)))
	text, err := exec.Command("cp", "-a", filepath.Join(s.dir, from), filepath.Join(s.dir, to)).CombinedOutput()
	must.NoError(s.t, err, must.Sprint(string(text)))
}

// awaitLeader waits until the server leads, after a start.
func (s *unlistedSite) awaitLeader() {
	s.t.Helper()
	s.await("a leader", func() bool {
		leader, err := s.api.Status().Leader()
		return err == nil && leader != ""
	})
}

// index is that of the newest state.
func (s *unlistedSite) index() uint64 {
	s.t.Helper()
	var newest wire.AllocChanges
	_, err := s.api.Raw().Query("/v1/node/"+s.node+"/allocations?changes=", &newest, nil)
	must.NoError(s.t, err)
	return newest.Index
}

// writes makes the server write entries up to an index.
func (s *unlistedSite) writes(until uint64) {
	s.t.Helper()
	for eligible := false; s.index() < until; eligible = !eligible {
		_, err := s.api.Nodes().ToggleEligibility(s.node, eligible, nil)
		must.NoError(s.t, err)
	}
	_, err := s.api.Nodes().ToggleEligibility(s.node, true, nil)
	must.NoError(s.t, err)
}

// makeCopy makes a copy of the data of the server, in a state with a history.
func (s *unlistedSite) makeCopy() {
	s.t.Helper()
	s.await("the cluster version", func() bool {
		var raft wire.RaftConfiguration
		_, err := s.api.Raw().Query("/v1/operator/raft/configuration", &raft, nil)
		return err == nil && raft.ClusterVersion >= 9
	})
	s.endServer()
	s.copyOf("server", "older")
	s.beginServer()
	s.awaitLeader()
}

// rollBack makes the server start from the copy.
func (s *unlistedSite) rollBack() {
	s.t.Helper()
	s.endServer()
	s.copyOf("older", "server")
	s.beginServer()
	s.awaitLeader()
}

// unlisted is the number of allocations that the node has registered as unlisted.
func (s *unlistedSite) unlisted() int {
	var n wire.Node
	_, err := s.api.Raw().Query("/v1/node/"+s.node, &n, nil)
	if err != nil || n.Unlisted == nil {
		return 0
	}
	return n.Unlisted.Count
}

func (s *unlistedSite) awaitUnlisted() {
	s.t.Helper()
	s.await("the report of the client", func() bool { return s.unlisted() == 1 })
}

// drainIsUnconfirmed drains the node by the command of an operator while a task runs that the servers do not list.
func (s *unlistedSite) drainIsUnconfirmed(alloc string) {
	s.t.Helper()
	drain := exec.CommandContext(s.t.Context(), s.binary, "node", "drain", "-enable", "-yes", s.node)
	drain.Env = append(os.Environ(), "NOMAD_ADDR="+s.address, "NOMAD_TOKEN="+s.config.SecretID)
	text, err := drain.CombinedOutput()
	exit, is := errors.AsType[*exec.ExitError](err)
	must.True(s.t, is, must.Sprintf("%v: %s", err, text))
	must.EqOp(s.t, 4, exit.ExitCode(), must.Sprint(string(text)))
	must.StrContains(s.t, string(text), "Outcome: unconfirmed; 1 unconfirmed allocation")
	must.StrContains(s.t, string(text), alloc)
	must.StrNotContains(s.t, string(text), "Outcome: complete")
}

// Bug: the server was stopped, and started from an older copy of its data directory, while the client and its
// tasks ran. The index of the client was above that of the server, so the client ignored its answers, or waited for
// lost entries. If the new entries overtook that index before the next request of the client, the answer had
// only changes since. A drain was complete, with exit code 0, beside the task that the server had lost.
//
//race:skip its programs do not have the detector
func TestNode_serverOnAnOlderCopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// lost are the further entries that the server loses.
		lost uint64
		// overtaken: the server writes as many entries again while the client is frozen.
		overtaken bool
	}{"many entries": {lost: 100}, "few entries": {overtaken: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startUnlisted(t)
			s.makeCopy()
			alloc := s.runs("web")
			s.writes(s.index() + c.lost)
			newest := s.index()
			if c.overtaken {
				frozen.Stop(t, s.nodes[0].client.Process.Pid)
			}
			s.rollBack()
			must.Less(t, newest, s.index())
			if c.overtaken {
				s.writes(newest + 1)
				must.NoError(t, s.nodes[0].client.Process.Signal(syscall.SIGCONT))
			}
			s.awaitUnlisted()
			s.drainIsUnconfirmed(alloc)
			s.drainsBeside(alloc)
			s.end(s.nodes[0])
		})
	}
}

// Bug: the server started from the same copy twice. The second start lost the registration of the client, and nothing
// that the client had read. So the client did not register again, and a drain was complete beside its task.
//
//race:skip its programs do not have the detector
func TestNode_serverTwiceOnAnOlderCopy(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	s.makeCopy()
	alloc := s.runs("web")
	for range 2 {
		s.rollBack()
		s.awaitUnlisted()
	}
	s.drainIsUnconfirmed(alloc)
	s.drainsBeside(alloc)
	s.end(s.nodes[0])
}

// Bug: the server lost the report that an allocation had ended. The client repeated it only after a restart, and a drain
// waited until then.
//
//race:skip its programs do not have the detector
func TestNode_reportOnlyInTheNewerCopy(t *testing.T) {
	t.Parallel()
	s := startUnlisted(t)
	alloc := s.runs("web")
	_, _, err := s.api.Jobs().Deregister("web", false, nil)
	must.NoError(t, err)
	s.makeCopy()
	status := func() string {
		a, _, err := s.api.Allocations().Info(alloc, nil)
		if err != nil {
			return err.Error()
		}
		return a.ClientStatus
	}
	must.Eq(t, "running", status())
	must.NoError(t, os.WriteFile(filepath.Join(s.journal, alloc+".ends"), nil, 0o600))
	s.await("the end of the allocation", func() bool { return status() == "complete" })
	s.rollBack()
	s.await("the repeated report", func() bool { return status() == "complete" })
	must.Zero(t, s.copies(alloc, "deaf"))
	s.end(s.nodes[0])
}
