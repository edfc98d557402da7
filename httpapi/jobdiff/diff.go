// Package jobdiff compares versions of a job, as the answer to a plan shows them. Begin with [Of].
package jobdiff

import (
	"encoding/json"
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
	d := &wire.JobDiff{ID: string(after.ID), Fields: diffFields(jobFields(before), jobFields(after)), Objects: []*wire.ObjectDiff{}}
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
		Name: name, Fields: diffFields(groupFields(before), groupFields(after)), Objects: []*wire.ObjectDiff{}, Updates: map[string]uint64{},
	}
	for _, object := range []struct {
		name   string
		fields func(*cluster.TaskGroup) []field
	}{{"EphemeralDisk", diskFields}, {"Migrate", migrateFields}, {"RestartPolicy", groupRestartFields}} {
		d.Objects = appendObject(d.Objects, object.name, object.fields(before), object.fields(after))
	}
	d.Fields = append(d.Fields, diffMaps("Meta", orNone(before).Meta, orNone(after).Meta)...)
	d.Objects = appendConstraints(d.Objects, orNone(before).Constraints, orNone(after).Constraints)
	d.Objects = appendVolumes(d.Objects, orNone(before).Volumes, orNone(after).Volumes)
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
	d := &wire.TaskDiff{Name: name, Fields: diffFields(taskFields(before), taskFields(after)), Objects: []*wire.ObjectDiff{}}
	was, is := orNone(before), orNone(after)
	d.Fields = append(d.Fields, diffMaps("Config", configFields(was), configFields(is))...)
	d.Fields = append(d.Fields, diffMaps("Env", was.Env, is.Env)...)
	d.Fields = append(d.Fields, diffMaps("Meta", was.Meta, is.Meta)...)
	d.Objects = appendObject(d.Objects, "Resources", resourceFields(before), resourceFields(after))
	d.Objects = appendObject(d.Objects, "RestartPolicy", restartFields(was.RestartPolicy), restartFields(is.RestartPolicy))
	d.Objects = appendConstraints(d.Objects, was.Constraints, is.Constraints)
	d.Objects = appendDevices(d.Objects, was.Devices, is.Devices)
	d.Objects = appendObject(d.Objects, "CSIPluginConfig", pluginFields(was.CSIPlugin), pluginFields(is.CSIPlugin))
	d.Objects = appendMounts(d.Objects, was.VolumeMounts, is.VolumeMounts)
	d.Type = diffType(before != nil, after != nil, len(d.Fields)+len(d.Objects) > 0)
	return d
}

// appendObject adds the difference of a block, unless both versions are equal.
func appendObject(to []*wire.ObjectDiff, name string, before, after []field) []*wire.ObjectDiff {
	fields := diffFields(before, after)
	if len(fields) == 0 {
		return to
	}
	return append(to, &wire.ObjectDiff{Type: diffType(len(before) > 0, len(after) > 0, true), Name: name, Fields: fields, Objects: []*wire.ObjectDiff{}})
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

// appendConstraints adds the constraints that only one version has.
func appendConstraints(to []*wire.ObjectDiff, before, after []cluster.Constraint) []*wire.ObjectDiff {
	fields := func(c cluster.Constraint) []field {
		return []field{{"LTarget", c.LTarget}, {"Operand", c.Operand}, {"RTarget", c.RTarget}}
	}
	for _, c := range before {
		if !slices.Contains(after, c) {
			to = appendObject(to, "Constraint", fields(c), nil)
		}
	}
	for _, c := range after {
		if !slices.Contains(before, c) {
			to = appendObject(to, "Constraint", nil, fields(c))
		}
	}
	return to
}

// appendDevices adds the requests for devices that differ. They have no key but their place in the list.
func appendDevices(to []*wire.ObjectDiff, before, after []cluster.DeviceRequest) []*wire.ObjectDiff {
	for i := range max(len(before), len(after)) {
		var was, is *cluster.DeviceRequest
		if i < len(before) {
			was = &before[i]
		}
		if i < len(after) {
			is = &after[i]
		}
		d := &wire.ObjectDiff{Name: "Device", Fields: diffFields(deviceFields(was), deviceFields(is)), Objects: []*wire.ObjectDiff{}}
		d.Objects = appendConstraints(d.Objects, orNone(was).Constraints, orNone(is).Constraints)
		d.Objects = appendAffinities(d.Objects, orNone(was).Affinities, orNone(is).Affinities)
		if len(d.Fields)+len(d.Objects) > 0 {
			d.Type = diffType(was != nil, is != nil, true)
			to = append(to, d)
		}
	}
	return to
}

func deviceFields(r *cluster.DeviceRequest) []field {
	if r == nil {
		return nil
	}
	return []field{{"Count", strconv.Itoa(r.Count)}, {"Name", r.Name}}
}

// appendAffinities adds the affinities that only one version has.
func appendAffinities(to []*wire.ObjectDiff, before, after []cluster.Affinity) []*wire.ObjectDiff {
	fields := func(a cluster.Affinity) []field {
		c := a.Constraint
		return []field{{"LTarget", c.LTarget}, {"Operand", c.Operand}, {"RTarget", c.RTarget}, {"Weight", strconv.Itoa(a.Weight)}}
	}
	for _, a := range before {
		if !slices.Contains(after, a) {
			to = appendObject(to, "Affinity", fields(a), nil)
		}
	}
	for _, a := range after {
		if !slices.Contains(before, a) {
			to = appendObject(to, "Affinity", nil, fields(a))
		}
	}
	return to
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

func groupRestartFields(g *cluster.TaskGroup) []field { return restartFields(orNone(g).RestartPolicy) }

func restartFields(p *cluster.RestartPolicy) []field {
	if p == nil {
		return nil
	}
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

// diffFields compares the fields of two versions of a part, which have the same names in the same
// order, or none. It returns those that differ, never nil.
func diffFields(before, after []field) []*wire.FieldDiff {
	list := []*wire.FieldDiff{}
	for i := range max(len(before), len(after)) {
		d := &wire.FieldDiff{}
		if i < len(before) {
			d.Name, d.Old = before[i].name, before[i].value
		}
		if i < len(after) {
			d.Name, d.New = after[i].name, after[i].value
		}
		if d.Old != d.New {
			d.Type = diffType(d.Old != "", d.New != "", true)
			list = append(list, d)
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
	if j == nil {
		return nil
	}
	return []field{
		{"Datacenters", strings.Join(j.Datacenters, ", ")}, {"NodePool", j.NodePool}, {"Priority", strconv.Itoa(j.Priority)},
		{"Stop", strconv.FormatBool(j.Stop)}, {"Type", string(j.Type)},
	}
}

func groupFields(g *cluster.TaskGroup) []field {
	if g == nil {
		return nil
	}
	return []field{
		{"Count", strconv.Itoa(g.Count)}, {"LostAfter", durationText(g.Disconnect.LostAfter)},
		{"NodeClasses", strings.Join(g.NodeClasses, ", ")}, {"ShutdownDelay", durationText(g.ShutdownDelay)},
		{"StopOnClientAfter", durationText(g.Disconnect.StopOnClientAfter)},
	}
}

func diskFields(g *cluster.TaskGroup) []field {
	if g == nil {
		return nil
	}
	disk := g.EphemeralDisk
	return []field{
		{"Migrate", strconv.FormatBool(disk.Migrate)}, {"SizeMB", strconv.FormatInt(disk.SizeMB, 10)}, {"Sticky", strconv.FormatBool(disk.Sticky)},
	}
}

func migrateFields(g *cluster.TaskGroup) []field {
	if g == nil || g.Migrate == nil {
		return nil
	}
	m := g.Migrate
	return []field{
		{"HealthCheck", string(m.HealthCheck)}, {"HealthyDeadline", m.HealthyDeadline.String()},
		{"MaxParallel", strconv.Itoa(m.MaxParallel)}, {"MinHealthyTime", m.MinHealthyTime.String()},
	}
}

func taskFields(t *cluster.Task) []field {
	if t == nil {
		return nil
	}
	logs := t.Logs()
	return []field{
		{"Driver", t.Driver}, {"KillSignal", t.KillSignal}, {"KillTimeout", t.KillTimeout.String()},
		{"Leader", strconv.FormatBool(t.Leader)}, {"Lifecycle", lifecycleText(t)},
		{"LogMaxFileSizeMB", strconv.Itoa(logs.MaxFileSizeMB)}, {"LogMaxFiles", strconv.Itoa(logs.MaxFiles)},
		{"ShutdownDelay", durationText(t.ShutdownDelay)}, {"StoragePlugin", strconv.FormatBool(t.StoragePlugin)}, {"User", t.User},
	}
}

func resourceFields(t *cluster.Task) []field {
	if t == nil {
		return nil
	}
	r := t.Resources
	return []field{
		{"CPU", strconv.FormatInt(r.CPU, 10)}, {"DiskMB", strconv.FormatInt(r.DiskMB, 10)},
		{"GPU", strconv.FormatInt(r.GPU, 10)}, {"MemoryMB", strconv.FormatInt(r.MemoryMB, 10)},
	}
}

// durationText is empty for zero, which is the same as none.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// union returns the names in either list, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func groupNames(j *cluster.Job) (names []string) {
	if j != nil {
		for _, g := range j.TaskGroups {
			names = append(names, g.Name)
		}
	}
	return names
}

func taskNames(g *cluster.TaskGroup) (names []string) {
	if g != nil {
		for _, t := range g.Tasks {
			names = append(names, t.Name)
		}
	}
	return names
}

// taskOf returns the group's task of that name, or nil.
func taskOf(g *cluster.TaskGroup, name string) *cluster.Task {
	if g == nil {
		return nil
	}
	for _, t := range g.Tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}
