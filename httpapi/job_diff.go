package httpapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// field is a value of a part of a job. An empty value is none.
type field struct{ name, value string }

// diffJob compares two versions of a job. A nil job has no fields and no groups.
func diffJob(before, after *cluster.Job) *wire.JobDiff {
	d := &wire.JobDiff{ID: string(after.ID), Fields: diffFields(jobFields(before), jobFields(after)), Objects: []*wire.ObjectDiff{}}
	changed := len(d.Fields) > 0
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
	}{{"EphemeralDisk", diskFields}, {"Migrate", migrateFields}} {
		d.Objects = appendObject(d.Objects, object.name, object.fields(before), object.fields(after))
	}
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
	d.Objects = appendObject(d.Objects, "Resources", resourceFields(before), resourceFields(after))
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
	return []field{
		{"KillTimeout", t.KillTimeout.String()}, {"ShutdownDelay", durationText(t.ShutdownDelay)},
		{"StoragePlugin", strconv.FormatBool(t.StoragePlugin)},
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
