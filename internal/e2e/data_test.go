package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// appends is a task that appends the id of its allocation to a file of the ephemeral disk.
const appends = `echo $NOMAD_ALLOC_ID >>$NOMAD_ALLOC_DIR/data/ids; j=%[1]s/$NOMAD_ALLOC_ID.obeys; echo start $(date +%%s%%N) >>$j; while :; do sleep 0.05; done`

// The data of an ephemeral disk follows its allocation from node to node. The drain ends only when the data has
// arrived. Bug: the servers accepted migrate = true, and the data stayed behind.
//
//race:skip its programs do not have the detector
func TestNode_dataFollowsTheAllocation(t *testing.T) {
	t.Parallel()
	s := startSite(t, 2, true)
	id, kind, migrate, size := "web", "service", true, 10
	task := rawExec("obeys", s.script(appends))
	group := api.NewTaskGroup("g", 1).AddTask(task)
	quick := 100 * time.Millisecond
	group.Migrate = &api.MigrateStrategy{MinHealthyTime: &quick}
	group.EphemeralDisk = &api.EphemeralDisk{Migrate: &migrate, Sticky: &migrate, SizeMB: &size}
	_, _, err := s.api.Jobs().Register((&api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}).AddTaskGroup(group), nil)
	must.NoError(t, err)

	var ids []string
	for range 3 {
		a := s.running("web", 1)[0]
		ids = append(ids, a.ID)
		must.Eq(t, strings.Join(ids, "\n")+"\n", dataFile(s, a, "ids"))
		_, err := s.api.Nodes().UpdateDrain(a.NodeID, &api.DrainSpec{}, false, nil)
		must.NoError(t, err)
		s.await("the end of the drain", func() bool { return s.drainOf(a.NodeID).Outcome != "" })
		must.Eq(t, "complete", s.drainOf(a.NodeID).Outcome)
		next := allocOf(s, allocOf(s, a.ID).NextAllocation)
		must.Eq(t, "copied", next.DataIn.State)
		must.Eq(t, a.ID, next.DataIn.Peer)
		must.Eq(t, "copied", allocOf(s, a.ID).DataOut.State)
		_, err = s.api.Nodes().ToggleEligibility(a.NodeID, true, nil)
		must.NoError(t, err)
	}
	s.stopJob("web")
}

// allocOf returns an allocation with the fields that only our servers have.
func allocOf(s *site, id string) *wire.Allocation {
	s.t.Helper()
	var a wire.Allocation
	_, err := s.api.Raw().Query("/v1/allocation/"+id, &a, nil)
	must.NoError(s.t, err)
	return &a
}

// dataFile returns a file of the ephemeral disk of an allocation.
func dataFile(s *site, a *api.AllocationListStub, name string) string {
	s.t.Helper()
	for _, n := range s.nodes {
		if n.name == a.NodeName {
			paths, err := filepath.Glob(filepath.Join(n.data, "*", a.ID, "alloc", "data", name))
			must.NoError(s.t, err)
			must.Len(s.t, 1, paths)
			text, err := os.ReadFile(paths[0])
			must.NoError(s.t, err)
			return string(text)
		}
	}
	s.t.Fatalf("no node %s", a.NodeName)
	return ""
}
