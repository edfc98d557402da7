package drain

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// A drain with a max_surge names the groups that it does not concern, each once with its reason.
func TestStopsFirst(t *testing.T) {
	t.Parallel()
	job := func(id cluster.JobID, kind cluster.JobType, disk bool) *cluster.Job {
		return &cluster.Job{Namespace: "default", ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{
			Name: "main", Count: 2, EphemeralDisk: cluster.EphemeralDisk{Migrate: disk}, Tasks: []*cluster.Task{{Name: "t"}},
		}}}
	}
	alloc := func(j *cluster.Job, status cluster.ClientStatus) *wire.Allocation {
		return wire.NewAllocation(&cluster.Allocation{Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: "main", ClientStatus: status}, "global")
	}
	db, cache, web, sum := job("db", "service", true), job("cache", "service", true), job("web", "service", false), job("sum", "batch", true)
	cache.Namespace = "ops"
	cache.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "v", Source: "v", PerAlloc: true}}
	allocs := []*wire.Allocation{
		alloc(db, cluster.ClientRunning), alloc(db, cluster.ClientPending), alloc(web, cluster.ClientRunning), alloc(sum, cluster.ClientRunning),
		alloc(cache, cluster.ClientRunning), alloc(job("old", "service", true), cluster.ClientComplete), {JobID: "without"},
	}
	lines := []string{stopsFirstHead, "  db.main: its ephemeral disk migrates", "  ops/cache.main: its ephemeral disk migrates"}
	must.Eq(t, lines, StopsFirstAmong(allocs).Lines())
	must.Nil(t, StopsFirstAmong(allocs[2:4]).Lines())

	left := []wire.DrainAlloc{{JobID: "db", TaskGroup: "main", StopsFirst: "its ephemeral disk migrates"}, {JobID: "web", TaskGroup: "main"}}
	must.Eq(t, lines[:2], StopsFirstOnNode(append(left, left...)).Lines())
	must.Eq(t, "stops first: its ephemeral disk migrates", planNote(drainplan.Group{NoRoom: true, StopsFirst: "its ephemeral disk migrates"}))
}

// The flag is in the request, and the strategy shows it.
func TestStrategy_maxSurge(t *testing.T) {
	t.Parallel()
	parse := func(line string) (s Strategy, err error) {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(new(strings.Builder))
		s.Options().Set(set)
		return s, set.Parse(strings.Fields(line))
	}
	s, err := parse("-max-surge 2 -ignore-system")
	must.NoError(t, err)
	must.Eq(t, &wire.DrainSpec{Deadline: time.Minute, IgnoreSystemJobs: true, MaxSurge: 2}, s.Spec(time.Minute))
	s, err = parse("-max-surge 0")
	must.NoError(t, err)
	must.True(t, s.Given())
	for _, line := range []string{"-max-surge -1", "-max-surge x", "-max-surge 1000001"} {
		_, err = parse(line)
		must.ErrorContains(t, err, "it must be a whole number from 0 to 1000000", must.Sprint(line))
	}
	must.Eq(t, "no deadline; ignoring system jobs; max_surge 3", cli.LimitText(&wire.DrainStrategy{IgnoreSystemJobs: true, MaxSurge: 3}))
	must.False(t, sameStrategy(&wire.DrainStrategy{MaxSurge: 1}, &wire.DrainStrategy{}))
	must.False(t, movedByResume(&wire.Node{}, &wire.DrainStrategy{MaxSurge: 1}, &wire.DrainStrategy{}))
}
