// Package jobversion reduces a job that is registered to what a cluster version has. While the servers of a
// cluster are upgraded, older servers do not have the newer fields.
package jobversion

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// At returns the job as a cluster of the version keeps it, and warnings of what has no effect yet. The error is
// for a job that would do harm without a field: its tasks would write to other places, find no ports, or fail
// together. The caller owns the job, which may change.
func At(j *cluster.Job, v cluster.Version) (kept *cluster.Job, warnings []string, err error) {
	switch {
	case v < cluster.VersionOfRollouts && keepsApart(j):
		return nil, nil, needs(v, "distinct_hosts needs", cluster.VersionOfRollouts)
	case v < cluster.VersionOfPorts && j.RequestsPorts():
		return nil, nil, needs(v, "jobs with ports need", cluster.VersionOfPorts)
	case v < cluster.VersionOfVolumes && j.UsesVolumes():
		return nil, nil, needs(v, "jobs with volumes need", cluster.VersionOfVolumes)
	}
	warn := func(what, again string) {
		warnings = append(warnings, fmt.Sprintf("the cluster has version %d until all its servers are upgraded: %s; register %s again after the upgrade", v, what, again))
	}
	if v < cluster.VersionOfRescheduling {
		for _, group := range withoutPolicies(j) {
			warn(fmt.Sprintf("the reschedule block of group %q has no effect yet", group), "the job")
		}
	}
	if v < cluster.VersionOfLimits {
		for _, what := range withoutLimits(j) {
			warn("the field "+what+" has no effect yet", "the job")
		}
	}
	if v < cluster.VersionOfSurge && withoutSurge(j) {
		warn("max_surge has no effect yet", "the job")
	}
	if v < cluster.VersionOfServices && j.HasServices() {
		j = j.WithoutServices()
		warn("services and their checks have no effect yet", "the job")
	}
	if v < cluster.VersionOfRollouts && j.NeededVersion() >= cluster.VersionOfRollouts {
		j = j.At(cluster.VersionOfConfirmation)
		warn("update blocks have no effect yet", "the job")
	}
	if v < cluster.VersionOfConfirmation && j.NeededVersion() >= cluster.VersionOfConfirmation {
		j = j.At(cluster.VersionOfVolumes)
		warn("Replace and Reconcile of Disconnect have no effect yet", "the job")
	}
	if v < cluster.VersionOfVolumes && j.NeededVersion() >= cluster.VersionOfVolumes {
		j = j.WithoutCSIPlugins()
		warn("storage plugins serve no volumes yet", "the job")
	}
	if j.NeededVersion() > v {
		j = j.At(v)
		missing := "volumes"
		if v < cluster.VersionOfDevices {
			missing = "devices and volumes"
		}
		if v < cluster.VersionOfDrivers {
			missing = "drivers, devices, volumes, lifecycle, constraints and environments"
		}
		warn(missing+" of the job have no effect yet", "it")
	}
	return j, warnings, nil
}

func needs(v cluster.Version, what string, needed cluster.Version) error {
	return fmt.Errorf("the cluster has version %d until all its servers are upgraded, and %s version %d: upgrade the servers, then register the job", v, what, needed)
}

func keepsApart(j *cluster.Job) bool {
	return j.DistinctHosts || slices.ContainsFunc(j.TaskGroups, func(g *cluster.TaskGroup) bool { return g.DistinctHosts })
}

// withoutLimits takes the fields of [cluster.VersionOfLimits] out of a job. It returns the names of those that the
// job had.
func withoutLimits(j *cluster.Job) (names []string) {
	var memory, cores, run bool
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		run, g.MaxRunDuration = run || g.MaxRunDuration != 0, 0
		for _, t := range g.Tasks {
			if t != nil {
				memory, cores = memory || t.MemoryMaxMB != 0, cores || t.Cores != 0
				t.MemoryMaxMB, t.Cores = 0, 0
			}
		}
	}
	if memory {
		names = append(names, "memory_max")
	}
	if cores {
		names = append(names, "cores")
	}
	if run {
		names = append(names, "max_run_duration")
	}
	return names
}

// withoutSurge takes max_surge out of a job. It reports whether the job had one.
func withoutSurge(j *cluster.Job) (had bool) {
	for _, g := range j.TaskGroups {
		if g != nil && g.Migrate != nil {
			had = had || g.Migrate.MaxSurge != 0
			g.Migrate.MaxSurge = 0
		}
	}
	return had
}

// withoutPolicies takes the reschedule policies out of a job. It returns the names of the groups whose policy is not the
// default.
func withoutPolicies(j *cluster.Job) (groups []string) {
	for _, g := range j.TaskGroups {
		if g == nil || g.Reschedule == nil {
			continue
		}
		if *g.Reschedule != *cluster.DefaultReschedulePolicy(j.Type) {
			groups = append(groups, g.Name)
		}
		g.Reschedule = nil
	}
	return groups
}
