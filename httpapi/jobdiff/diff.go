// Package jobdiff compares versions of a job, as the answer to a plan shows them. Begin with [Of].
package jobdiff

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// field is a value of a part of a job. An empty value is none.
type field struct{ name, value string }

// Of compares two versions of a job. A nil job has no fields and no groups. After has its defaults filled in.
func Of(before, after *cluster.Job) *wire.JobDiff {
	if before != nil { // an older server may not have filled in a default of today
		before = before.Copy()
		before.Canonicalize()
	}
	d := &wire.JobDiff{ID: string(after.ID), Fields: diffFields(before, after, jobFields), Objects: []*wire.ObjectDiff{}}
	d.Fields = append(d.Fields, diffMaps("Meta", orNone(before).Meta, after.Meta)...)
	d.Objects = appendConstraints(d.Objects, orNone(before).Constraints, after.Constraints)
	changed := len(d.Fields)+len(d.Objects) > 0
	for _, name := range union(groupNames(before), groupNames(after)) {
		g := diffGroup(name, before.Group(name), after.Group(name))
		changed = changed || g.Type != wire.DiffNone
		d.TaskGroups = append(d.TaskGroups, g)
	}
	d.Type = diffType(before != nil, true, changed)
	return d
}

func diffGroup(name string, before, after *cluster.TaskGroup) *wire.TaskGroupDiff {
	d := &wire.TaskGroupDiff{
		Name: name, Fields: diffFields(before, after, groupFields), Objects: []*wire.ObjectDiff{}, Updates: map[string]uint64{},
	}
	was, is := orNone(before), orNone(after)
	d.Objects = appendObject(d.Objects, "EphemeralDisk", before, after, diskFields)
	d.Objects = appendObject(d.Objects, "Migrate", was.Migrate, is.Migrate, migrateFields)
	d.Objects = appendObject(d.Objects, "Update", was.Update, is.Update, updateFields)
	d.Objects = appendObject(d.Objects, "ReschedulePolicy", was.Reschedule, is.Reschedule, rescheduleFields)
	d.Objects = appendObject(d.Objects, "RestartPolicy", was.RestartPolicy, is.RestartPolicy, restartFields)
	d.Fields = append(d.Fields, diffMaps("Meta", was.Meta, is.Meta)...)
	d.Objects = appendConstraints(d.Objects, was.Constraints, is.Constraints)
	d.Objects = appendVolumes(d.Objects, was.Volumes, is.Volumes)
	d.Objects = appendPorts(d.Objects, was.Ports, is.Ports)
	d.Objects = appendServices(d.Objects, was.Services, is.Services)
	changed := len(d.Fields)+len(d.Objects) > 0
	for _, task := range union(taskNames(before), taskNames(after)) {
		t := diffTask(task, taskOf(before, task), taskOf(after, task))
		changed = changed || t.Type != wire.DiffNone
		d.Tasks = append(d.Tasks, t)
	}
	d.Type = diffType(before != nil, after != nil, changed)
	return d
}

func diffTask(name string, before, after *cluster.Task) *wire.TaskDiff {
	d := &wire.TaskDiff{Name: name, Fields: diffFields(before, after, taskFields), Objects: []*wire.ObjectDiff{}}
	was, is := orNone(before), orNone(after)
	d.Fields = append(d.Fields, diffMaps("Config", configFields(was), configFields(is))...)
	d.Fields = append(d.Fields, diffMaps("Env", was.Env, is.Env)...)
	d.Fields = append(d.Fields, diffMaps("Meta", was.Meta, is.Meta)...)
	d.Objects = appendObject(d.Objects, "Resources", before, after, resourceFields)
	d.Objects = appendObject(d.Objects, "RestartPolicy", was.RestartPolicy, is.RestartPolicy, restartFields)
	d.Objects = appendConstraints(d.Objects, was.Constraints, is.Constraints)
	d.Objects = appendDevices(d.Objects, was.Devices, is.Devices)
	d.Objects = appendPorts(d.Objects, was.Ports, is.Ports)
	d.Objects = appendServices(d.Objects, was.Services, is.Services)
	d.Objects = appendObject(d.Objects, "CSIPluginConfig", was.CSIPlugin, is.CSIPlugin, pluginFields)
	d.Objects = appendMounts(d.Objects, was.VolumeMounts, is.VolumeMounts)
	d.Type = diffType(before != nil, after != nil, len(d.Fields)+len(d.Objects) > 0)
	return d
}

// appendObject adds the difference of a block, unless both versions are equal. A block is nil if a version has
// none.
func appendObject[T any](to []*wire.ObjectDiff, name string, before, after *T, fields func(*T) []field) []*wire.ObjectDiff {
	return appendDiff(to, &wire.ObjectDiff{
		Type: diffType(before != nil, after != nil, true), Name: name, Fields: diffFields(before, after, fields), Objects: []*wire.ObjectDiff{},
	})
}

// appendDiff adds a difference, unless nothing differs.
func appendDiff(to []*wire.ObjectDiff, d *wire.ObjectDiff) []*wire.ObjectDiff {
	if len(d.Fields)+len(d.Objects) == 0 {
		return to
	}
	return append(to, d)
}

// orNone returns the part, or an empty one for nil.
func orNone[T any](part *T) *T {
	if part == nil {
		return new(T)
	}
	return part
}

// diffMaps compares two maps. The fields are named "what[key]", in the order of the keys.
func diffMaps(what string, before, after map[string]string) []*wire.FieldDiff {
	var list []*wire.FieldDiff
	for _, key := range union(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
		old, was := before[key]
		now, is := after[key]
		if was != is || old != now {
			list = append(list, &wire.FieldDiff{Type: diffType(was, is, true), Name: what + "[" + key + "]", Old: old, New: now})
		}
	}
	return list
}

// appendValues adds the values that only one version has.
func appendValues[T comparable](to []*wire.ObjectDiff, name string, before, after []T, fields func(*T) []field) []*wire.ObjectDiff {
	for i, value := range before {
		if !slices.Contains(after, value) {
			to = appendObject(to, name, &before[i], nil, fields)
		}
	}
	for i, value := range after {
		if !slices.Contains(before, value) {
			to = appendObject(to, name, nil, &after[i], fields)
		}
	}
	return to
}

func appendConstraints(to []*wire.ObjectDiff, before, after []cluster.Constraint) []*wire.ObjectDiff {
	return appendValues(to, "Constraint", before, after, constraintFields)
}

// appendPorts adds the ports that only one version has.
func appendPorts(to []*wire.ObjectDiff, before, after []cluster.PortRequest) []*wire.ObjectDiff {
	return appendValues(to, "Port", before, after, portFields)
}

func portFields(p *cluster.PortRequest) []field {
	return []field{{"Label", p.Label}, {"Static", number(p.Static)}, {"To", number(p.To)}}
}

// number is a number as text, and empty for zero.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func constraintFields(c *cluster.Constraint) []field {
	return []field{{"LTarget", c.LTarget}, {"Operand", c.Operand}, {"RTarget", c.RTarget}}
}

func affinityFields(a *cluster.Affinity) []field {
	return append(constraintFields(&a.Constraint), field{"Weight", strconv.Itoa(a.Weight)})
}

// pairs yields the items of two lists at the same places; nil if a list is shorter. It is for items
// that have no other key.
func pairs[T any](before, after []T) iter.Seq2[*T, *T] {
	at := func(list []T, i int) *T {
		if i < len(list) {
			return &list[i]
		}
		return nil
	}
	return func(yield func(was, is *T) bool) {
		for i := range max(len(before), len(after)) {
			if !yield(at(before, i), at(after, i)) {
				return
			}
		}
	}
}

// appendDevices adds the requests for devices that differ.
func appendDevices(to []*wire.ObjectDiff, before, after []cluster.DeviceRequest) []*wire.ObjectDiff {
	for was, is := range pairs(before, after) {
		d := &wire.ObjectDiff{Type: diffType(was != nil, is != nil, true), Name: "Device", Fields: diffFields(was, is, deviceFields), Objects: []*wire.ObjectDiff{}}
		d.Objects = appendConstraints(d.Objects, orNone(was).Constraints, orNone(is).Constraints)
		d.Objects = appendValues(d.Objects, "Affinity", orNone(was).Affinities, orNone(is).Affinities, affinityFields)
		to = appendDiff(to, d)
	}
	return to
}

func deviceFields(r *cluster.DeviceRequest) []field {
	return []field{{"Count", strconv.Itoa(r.Count)}, {"Name", r.Name}}
}

// configFields are the keys of a driver's configuration with their values as JSON.
func configFields(t *cluster.Task) map[string]string {
	var values map[string]json.RawMessage
	if len(t.Config) == 0 || json.Unmarshal(t.Config, &values) != nil {
		return nil
	}
	fields := make(map[string]string, len(values))
	for key, value := range values {
		fields[key] = string(value)
	}
	return fields
}

func restartFields(p *cluster.RestartPolicy) []field {
	return []field{
		{"Attempts", strconv.Itoa(p.Attempts)}, {"Delay", p.Delay.String()}, {"Interval", p.Interval.String()}, {"Mode", string(p.Mode)},
	}
}

func lifecycleText(t *cluster.Task) string {
	switch l := t.Lifecycle; {
	case l == nil:
		return ""
	case l.Sidecar:
		return string(l.Hook) + " sidecar"
	default:
		return string(l.Hook)
	}
}

// diffFields returns the fields of a part that differ, never nil. The part is nil if a version has none.
func diffFields[T any](before, after *T, fields func(*T) []field) []*wire.FieldDiff {
	var was, is []field
	if before != nil {
		was = fields(before)
	}
	if after != nil {
		is = fields(after)
	}
	list := []*wire.FieldDiff{}
	for old, now := range pairs(was, is) {
		name := cmp.Or(orNone(old).name, orNone(now).name)
		if was, is := orNone(old).value, orNone(now).value; was != is {
			list = append(list, &wire.FieldDiff{Type: diffType(was != "", is != "", true), Name: name, Old: was, New: is})
		}
	}
	return list
}

// diffType returns the type of the difference of a part that was there, is there, or both.
func diffType(was, is, changed bool) wire.DiffType {
	switch {
	case !was && is:
		return wire.DiffAdded
	case was && !is:
		return wire.DiffDeleted
	case changed:
		return wire.DiffEdited
	}
	return wire.DiffNone
}

func jobFields(j *cluster.Job) []field {
	return []field{
		{"Datacenters", strings.Join(j.Datacenters, ", ")}, {"DistinctHosts", flagText(j.DistinctHosts)}, {"NodePool", j.NodePool}, {"Priority", strconv.Itoa(j.Priority)},
		{"Stop", strconv.FormatBool(j.Stop)}, {"Type", string(j.Type)},
	}
}

func groupFields(g *cluster.TaskGroup) []field {
	return []field{
		{"Count", strconv.Itoa(g.Count)}, {"DistinctHosts", flagText(g.DistinctHosts)}, {"KeepReplacement", flagText(g.Disconnect.KeepReplacement)},
		{"LostAfter", durationText(g.Disconnect.LostAfter)}, {"MaxRunDuration", durationText(g.MaxRunDuration)}, {"NoReplace", flagText(g.Disconnect.NoReplace)},
		{"NodeClasses", strings.Join(g.NodeClasses, ", ")}, {"ShutdownDelay", durationText(g.ShutdownDelay)},
		{"StopOnClientAfter", durationText(g.Disconnect.StopOnClientAfter)},
	}
}

func diskFields(g *cluster.TaskGroup) []field {
	disk := g.EphemeralDisk
	return []field{
		{"Migrate", strconv.FormatBool(disk.Migrate)}, {"SizeMB", strconv.FormatInt(disk.SizeMB, 10)}, {"Sticky", strconv.FormatBool(disk.Sticky)},
	}
}

func rescheduleFields(p *cluster.ReschedulePolicy) []field {
	return []field{
		{"Attempts", strconv.Itoa(p.Attempts)}, {"Delay", p.Delay.String()}, {"DelayFunction", string(p.DelayFunction)},
		{"Interval", p.Interval.String()}, {"MaxDelay", p.MaxDelay.String()}, {"Unlimited", strconv.FormatBool(p.Unlimited)},
	}
}

func updateFields(u *cluster.UpdateStrategy) []field {
	return []field{
		{"HealthCheck", string(u.HealthCheck)}, {"HealthyDeadline", u.HealthyDeadline.String()}, {"MaxParallel", strconv.Itoa(u.MaxParallel)}, {"MinHealthyTime", u.MinHealthyTime.String()},
	}
}

func migrateFields(m *cluster.MigrateStrategy) []field {
	return []field{
		{"HealthCheck", string(m.HealthCheck)}, {"HealthyDeadline", m.HealthyDeadline.String()},
		{"MaxParallel", strconv.Itoa(m.MaxParallel)}, {"MaxSurge", strconv.Itoa(m.MaxSurge)}, {"MinHealthyTime", m.MinHealthyTime.String()},
	}
}

func taskFields(t *cluster.Task) []field {
	logs := t.Logs()
	return []field{
		{"Driver", t.Driver}, {"KillSignal", t.KillSignal}, {"KillTimeout", t.KillTimeout.String()},
		{"Leader", strconv.FormatBool(t.Leader)}, {"Lifecycle", lifecycleText(t)},
		{"LogMaxFileSizeMB", strconv.Itoa(logs.MaxFileSizeMB)}, {"LogMaxFiles", strconv.Itoa(logs.MaxFiles)},
		{"ShutdownDelay", durationText(t.ShutdownDelay)}, {"StoragePlugin", strconv.FormatBool(t.StoragePlugin)}, {"User", t.User},
	}
}

func resourceFields(t *cluster.Task) []field {
	r := t.Resources
	return []field{
		{"CPU", strconv.FormatInt(r.CPU, 10)}, {"Cores", number(t.Cores)}, {"DiskMB", strconv.FormatInt(r.DiskMB, 10)},
		{"GPU", strconv.FormatInt(r.GPU, 10)}, {"MemoryMB", strconv.FormatInt(r.MemoryMB, 10)}, {"MemoryMaxMB", number(int(t.MemoryMaxMB))},
	}
}

// durationText is empty for zero, which is the same as none.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// flagText is empty for false, which is the same as none.
func flagText(set bool) string {
	if !set {
		return ""
	}
	return strconv.FormatBool(set)
}

// union returns the names in either list, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func groupNames(j *cluster.Job) (names []string) {
	for _, g := range orNone(j).TaskGroups {
		names = append(names, g.Name)
	}
	return names
}

func taskNames(g *cluster.TaskGroup) (names []string) {
	for _, t := range orNone(g).Tasks {
		names = append(names, t.Name)
	}
	return names
}

// taskOf returns the group's task of that name, or nil.
func taskOf(g *cluster.TaskGroup, name string) *cluster.Task {
	for _, t := range orNone(g).Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}
