package limits

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The largest numbers of a request. Larger ones are mistakes. Sums over all tasks and allocations of a job with
// such numbers do not overflow. FSMs do not check them: older logs may have larger ones.
const (
	// Longest bounds durations.
	Longest = 365 * 24 * time.Hour
	// maxCPU is 16,777 cores, in thousandths. maxMemoryMB is 16 TiB, and maxDiskMB is 1 PiB.
	maxCPU      = 1 << 24
	maxMemoryMB = 1 << 24
	maxDiskMB   = 1 << 30
	maxGPU      = 1000 * cluster.MaxDeviceCount
	// maxUnread bounds IOPS, which the servers do not keep.
	maxUnread = 1 << 20
	// maxRestarts bounds the restarts in one interval.
	maxRestarts = 100_000
	// maxLogFiles and maxLogFileMB bound the log of one stream; the file has 1 TiB.
	maxLogFiles  = 10_000
	maxLogFileMB = 1 << 20
	// maxNumberReasons bounds the reasons of a refusal.
	maxNumberReasons = 10
)

// Numbers returns an error that names the numbers of the job that are outside their ranges. A nil
// number has a default, and is in its range. docs/api.md has the same ranges.
func Numbers(w *wire.Job) error {
	errs := slices.Concat(checkMigrate("job", w.Migrate), checkUpdate("job", w.Update), checkReschedule("job", "Reschedule.", w.Reschedule))
	errs = append(errs, checkRange("job", "Priority", w.Priority, 0, 100), checkSurgeOfMeta("job", w.Meta))
	for i, g := range w.TaskGroups {
		if g != nil {
			errs = append(errs, checkGroupNumbers(placeOf("group", orEmpty(g.Name), i), g)...)
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > maxNumberReasons {
		errs = append(errs[:maxNumberReasons], errors.New("and more is wrong"))
	}
	return errors.Join(errs...)
}

func checkGroupNumbers(place string, w *wire.TaskGroup) []error {
	errs := []error{
		checkRange(place, "Count", w.Count, 0, cluster.MaxJobCount),
		checkSurgeOfMeta(place, w.Meta),
		checkDuration(place, "ShutdownDelay", w.ShutdownDelay),
		checkDuration(place, "MaxRunDuration", w.MaxRunDuration),
		checkDuration(place, "MaxClientDisconnect", w.MaxClientDisconnect),
		checkDuration(place, "StopAfterClientDisconnect", w.StopAfterClientDisconnect),
	}
	if d := w.Disconnect; d != nil {
		errs = append(errs, checkDuration(place, "Disconnect.LostAfter", d.LostAfter), checkDuration(place, "Disconnect.StopOnClientAfter", d.StopOnClientAfter))
	}
	if d := w.EphemeralDisk; d != nil {
		errs = append(errs, checkRange(place, "EphemeralDisk.SizeMB", d.SizeMB, 0, maxDiskMB))
	}
	errs = slices.Concat(errs, checkMigrate(place, w.Migrate), checkUpdate(place, w.Update), checkReschedule(place, "ReschedulePolicy.", w.ReschedulePolicy),
		checkRestarts(place, w.RestartPolicy), checkPorts(place, "Networks", w.Networks), checkServices(place, w.Services))
	for i, t := range w.Tasks {
		if t != nil {
			errs = append(errs, checkTaskNumbers(place+", "+placeOf("task", t.Name, i), t)...)
		}
	}
	return errs
}

func checkTaskNumbers(place string, w *wire.Task) []error {
	errs := []error{checkDuration(place, "KillTimeout", w.KillTimeout), checkDuration(place, "ShutdownDelay", &w.ShutdownDelay)}
	errs = slices.Concat(errs, checkRestarts(place, w.RestartPolicy), checkServices(place, w.Services))
	if l := w.LogConfig; l != nil {
		errs = append(errs, checkRange(place, "LogConfig.MaxFiles", l.MaxFiles, 1, maxLogFiles),
			checkRange(place, "LogConfig.MaxFileSizeMB", l.MaxFileSizeMB, 1, maxLogFileMB))
	}
	if p := w.CSIPluginConfig; p != nil {
		errs = append(errs, checkDuration(place, "CSIPluginConfig.HealthTimeout", &p.HealthTimeout))
	}
	r := w.Resources
	if r == nil {
		return errs
	}
	errs = append(errs,
		checkRange(place, "Resources.CPU", r.CPU, 0, maxCPU),
		checkRange(place, "Resources.MemoryMB", r.MemoryMB, 0, maxMemoryMB),
		checkRange(place, "Resources.DiskMB", r.DiskMB, 0, maxDiskMB),
		checkRange(place, "Resources.GPU", &r.GPU, 0, maxGPU),
		checkRange(place, "Resources.Cores", r.Cores, 0, cluster.MaxCores),
		checkRange(place, "Resources.MemoryMaxMB", r.MemoryMaxMB, -1, maxMemoryMB), // -1 is no limit in the compatible API
		checkRange(place, "Resources.SecretsMB", r.SecretsMB, 0, maxMemoryMB),
		checkRange(place, "Resources.IOPS", r.IOPS, 0, maxUnread),
	)
	errs = append(errs, checkPorts(place, "Resources.Networks", r.Networks)...)
	for i, d := range r.Devices {
		device := fmt.Sprintf("Resources.Devices[%d].", i)
		errs = append(errs, checkRange(place, device+"Count", d.Count, 1, cluster.MaxDeviceCount))
		for i, a := range d.Affinities {
			errs = append(errs, checkRange(place, fmt.Sprintf("%sAffinities[%d].Weight", device, i), a.Weight, -cluster.MaxAffinityWeight, cluster.MaxAffinityWeight))
		}
	}
	return errs
}

func checkPorts(place, field string, networks []*wire.NetworkResource) (errs []error) {
	for i, n := range networks {
		if n == nil {
			continue
		}
		for k, p := range n.ReservedPorts {
			port := fmt.Sprintf("%s[%d].ReservedPorts[%d].", field, i, k)
			errs = append(errs, checkRange(place, port+"Value", &p.Value, 1, cluster.MaxPort), checkRange(place, port+"To", &p.To, -1, cluster.MaxPort))
		}
		for k, p := range n.DynamicPorts {
			errs = append(errs, checkRange(place, fmt.Sprintf("%s[%d].DynamicPorts[%d].To", field, i, k), &p.To, -1, cluster.MaxPort))
		}
	}
	return errs
}

func checkServices(place string, services []*wire.Service) (errs []error) {
	for i, s := range services {
		if s == nil {
			continue
		}
		service := fmt.Sprintf("Services[%d].", i)
		errs = append(errs, checkCheckRestart(place, service, s.CheckRestart)...)
		for k, c := range s.Checks {
			if c == nil {
				continue
			}
			check := fmt.Sprintf("%sChecks[%d].", service, k)
			errs = append(errs, checkRange(place, check+"Interval", &c.Interval, cluster.MinCheckTime, Longest), checkRange(place, check+"Timeout", &c.Timeout, cluster.MinCheckTime, Longest),
				checkRange(place, check+"SuccessBeforePassing", &c.SuccessBeforePassing, 0, maxRestarts),
				checkRange(place, check+"FailuresBeforeCritical", &c.FailuresBeforeCritical, 0, maxRestarts))
			errs = append(errs, checkCheckRestart(place, check, c.CheckRestart)...)
		}
	}
	return errs
}

func checkCheckRestart(place, of string, w *wire.CheckRestart) []error {
	if w == nil {
		return nil
	}
	return []error{
		checkRange(place, of+"CheckRestart.Limit", &w.Limit, 0, maxRestarts), checkDuration(place, of+"CheckRestart.Grace", w.Grace),
	}
}

func checkUpdate(place string, w *wire.UpdateStrategy) []error {
	if w == nil {
		return nil
	}
	return []error{
		checkRange(place, "Update.MaxParallel", w.MaxParallel, 0, cluster.MaxJobCount),
		checkDuration(place, "Update.MinHealthyTime", w.MinHealthyTime), checkDuration(place, "Update.HealthyDeadline", w.HealthyDeadline),
	}
}

// checkReschedule checks the ranges that do not depend on other fields.
func checkReschedule(place, block string, w *wire.ReschedulePolicy) []error {
	if w == nil {
		return nil
	}
	return []error{
		checkRange(place, block+"Attempts", w.Attempts, 0, cluster.MaxRescheduleAttempts),
		checkDuration(place, block+"Interval", w.Interval), checkDuration(place, block+"Delay", w.Delay), checkDuration(place, block+"MaxDelay", w.MaxDelay),
	}
}

func checkMigrate(place string, w *wire.MigrateStrategy) []error {
	if w == nil {
		return nil
	}
	return []error{
		checkRange(place, "Migrate.MaxParallel", w.MaxParallel, 0, cluster.MaxJobCount),
		checkDuration(place, "Migrate.MinHealthyTime", w.MinHealthyTime),
		checkDuration(place, "Migrate.HealthyDeadline", w.HealthyDeadline),
		checkRange(place, "Migrate.MaxSurge", w.MaxSurge, 0, cluster.MaxMaxSurge),
	}
}

// checkSurgeOfMeta checks max_surge in the meta of a job or a group.
func checkSurgeOfMeta(place string, meta map[string]string) error {
	text, is := meta[cluster.MetaMaxSurge]
	if !is {
		return nil
	}
	if _, err := wire.ParseMaxSurge(text); err != nil {
		return fmt.Errorf("%s: Meta.%s is %s; %w", place, cluster.MetaMaxSurge, failure.Quoted(text), err)
	}
	return nil
}

func checkRestarts(place string, w *wire.RestartPolicy) []error {
	if w == nil {
		return nil
	}
	return []error{
		checkRange(place, "RestartPolicy.Attempts", w.Attempts, 0, maxRestarts),
		checkRange(place, "RestartPolicy.Interval", w.Interval, cluster.MinRestartInterval, Longest),
		checkDuration(place, "RestartPolicy.Delay", w.Delay),
	}
}

func checkDuration(place, field string, d *time.Duration) error {
	return checkRange(place, field, d, 0, Longest)
}

// checkRange returns an error that names the number if it is less than least or more than most.
func checkRange[T int | int64 | uint64 | time.Duration](place, field string, value *T, least, most T) error {
	switch {
	case value == nil:
		return nil
	case *value < least:
		return fmt.Errorf("%s: %s is %v; the least is %v", place, field, *value, least)
	case *value > most:
		return fmt.Errorf("%s: %s is %v; the most is %v", place, field, *value, most)
	}
	return nil
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
