package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// volumeInUse is a fixture with a forced drain that has marked a consumer with a volume on a node
// which takes volumes off within a minute. A system allocation follows it.
func volumeInUse(t *testing.T) *fixture {
	s := newFixture(t, invariant.Options{})
	s.node("n1")
	s.limits("n1", time.Minute, 10*time.Minute)
	s.volume("data")
	s.job(withVolume(service("db", 1, 1)))
	s.job(newJob(cluster.JobSystem, "logs", 1))
	s.place("d1", "db", "n1")
	s.place("s1", "logs", "n1")
	s.run("d1", "s1")
	s.drain("n1", -1)
	s.mark(cluster.MarkForced, "d1")
	return s
}

// servingPlugin is a fixture whose drain leaves the system allocation s1 with a volume of the
// plugin p1. Nothing else is on the node.
func servingPlugin(t *testing.T, o invariant.Options) *fixture {
	s := newFixture(t, o)
	s.node("n1")
	s.limits("n1", time.Minute, 10*time.Minute)
	s.volume("data")
	s.job(withVolume(newJob(cluster.JobSystem, "backup", 1)))
	disks := plugin(newJob(cluster.JobSystem, "disks", 1))
	disks.TaskGroups[0].Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginNode}
	s.job(disks)
	s.place("s1", "backup", "n1")
	s.place("p1", "disks", "n1")
	s.run("s1", "p1")
	s.lead(1)
	s.apply(s.request("n1", &cluster.DrainSpec{IgnoreSystemJobs: true}))
	s.read(1)
	return s
}

// allStages is a fixture with a consumer a1, a system allocation s1 and a storage plugin p1 on
// the draining node n1.
func allStages(t *testing.T, o invariant.Options, deadline time.Duration) *fixture {
	s := web(t, o, 1, 1)
	s.job(newJob(cluster.JobSystem, "logs", 1))
	s.job(plugin(newJob(cluster.JobSystem, "csi", 1)))
	s.place("s1", "logs", "n1")
	s.place("p1", "csi", "n1")
	s.run("s1", "p1")
	s.drain("n1", deadline)
	return s
}
