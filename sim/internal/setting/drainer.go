package setting

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Spec returns the specification of a drain request.
func Spec(d *scenario.Drain) cluster.DrainSpec {
	return cluster.DrainSpec{Deadline: d.Deadline, IgnoreSystemJobs: d.IgnoreSystem, MaxSurge: d.MaxSurge}
}
