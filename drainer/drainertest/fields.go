package drainertest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// DecisionFields returns the fields of rows that [TestStore] sets and compares, as "Type.Field" and
// sorted: the fields that the drainer's decisions read, and Drain.PurgedRunning, which is in the
// record of the drain. A store must keep these fields. It may lose all others.
func DecisionFields() []string {
	var names []string
	for _, t := range rowTypes() {
		for _, f := range decisionFieldsOf(t) {
			names = append(names, t.Name()+"."+f)
		}
	}
	slices.Sort(names)
	return names
}

// rowTypes are the types of rows and of the structs in them.
func rowTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[cluster.Node](), reflect.TypeFor[cluster.Drain](), reflect.TypeFor[cluster.DrainStrategy](), reflect.TypeFor[cluster.DrainSpec](), reflect.TypeFor[cluster.DrainPause](),
		reflect.TypeFor[cluster.Job](), reflect.TypeFor[cluster.TaskGroup](), reflect.TypeFor[cluster.MigrateStrategy](), reflect.TypeFor[cluster.ReschedulePolicy](),
		reflect.TypeFor[cluster.EphemeralDisk](), reflect.TypeFor[cluster.Task](), reflect.TypeFor[cluster.Lifecycle](),
		reflect.TypeFor[cluster.Allocation](), reflect.TypeFor[cluster.DesiredTransition](), reflect.TypeFor[cluster.DeploymentStatus](),
		reflect.TypeFor[cluster.Evaluation](), reflect.TypeFor[cluster.VolumeHolds](), reflect.TypeFor[cluster.VolumeHold](), reflect.TypeFor[cluster.DataMove](),
		reflect.TypeFor[cluster.UnlistedAllocs](), reflect.TypeFor[cluster.VolumeRequest](), reflect.TypeFor[cluster.VolumeCapability](),
	}
}

// decisionFieldsOf returns the fields of a type that decisions read, or nil. diff compares them in
// this order.
func decisionFieldsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[cluster.Node]():
		return []string{"ID", "Name", "Status", "StatusChangedAt", "Drain", "VolumeAllowance", "HoldLimit", "Unlisted"}
	case reflect.TypeFor[cluster.UnlistedAllocs]():
		return []string{"Count", "Allocs"}
	case reflect.TypeFor[cluster.Drain]():
		return []string{"ID", "Revision", "Strategy", "UpdatedAt", "Paused", "Marked", "PurgedRunning", "CreateIndex"}
	case reflect.TypeFor[cluster.DrainStrategy]():
		return []string{"DrainSpec", "ForceDeadline", "StartedAt"}
	case reflect.TypeFor[cluster.DrainSpec]():
		return []string{"Deadline", "IgnoreSystemJobs", "MaxSurge"}
	case reflect.TypeFor[cluster.DrainPause]():
		return []string{"At", "By"}
	case reflect.TypeFor[cluster.Job]():
		return []string{"Namespace", "ID", "Type", "Priority", "Stop", "TaskGroups"}
	case reflect.TypeFor[cluster.TaskGroup]():
		return []string{"Name", "Count", "Migrate", "Reschedule", "EphemeralDisk", "ShutdownDelay", "Tasks", "Volumes"}
	case reflect.TypeFor[cluster.MigrateStrategy]():
		return []string{"MaxParallel", "MaxSurge", "HealthyDeadline"}
	case reflect.TypeFor[cluster.ReschedulePolicy]():
		return []string{"Attempts", "Interval", "Delay", "DelayFunction", "MaxDelay", "Unlimited"}
	case reflect.TypeFor[cluster.EphemeralDisk]():
		return []string{"Migrate"}
	case reflect.TypeFor[cluster.Task]():
		return []string{"KillTimeout", "ShutdownDelay", "StoragePlugin", "Leader", "Lifecycle"}
	case reflect.TypeFor[cluster.VolumeRequest]():
		return []string{"Name", "ReadOnly", "PerAlloc", "Capability"}
	case reflect.TypeFor[cluster.VolumeCapability]():
		return []string{"Access"}
	case reflect.TypeFor[cluster.Lifecycle]():
		return []string{"Hook", "Sidecar"}
	case reflect.TypeFor[cluster.Allocation]():
		return []string{
			"ID", "Namespace", "NodeID", "JobID", "TaskGroup", "DesiredStatus", "DesiredTransition", "StoppedAt", "ClientStatus",
			"PreviousAllocation", "NextAllocation", "DeploymentStatus", "CreateTime", "CreateIndex", "ModifyTime", "ConfirmedAt", "EndedAt", "Job",
			"VolumeHolds", "DataIn", "DataOut", "Standby",
		}
	case reflect.TypeFor[cluster.DataMove]():
		return []string{"State", "Why", "Bytes", "EndedAt"}
	case reflect.TypeFor[cluster.VolumeHolds]():
		return []string{"Volumes", "More"}
	case reflect.TypeFor[cluster.VolumeHold]():
		return []string{"Namespace", "Volume", "Alloc", "Path", "Reason", "Since"}
	case reflect.TypeFor[cluster.DesiredTransition]():
		return []string{"Migrate", "MigrateDisablePlacement", "ForceReschedule", "Drain", "Class", "MarkedAt", "Surge", "SurgeAt"}
	case reflect.TypeFor[cluster.DeploymentStatus]():
		return []string{"Healthy", "UnhealthySince", "Canary"}
	case reflect.TypeFor[cluster.Evaluation]():
		return []string{"ID", "Namespace", "JobID", "Status", "StatusDescription", "Queued", "CreateTime", "CreateIndex"}
	}
	return nil
}

// row is a row of a state, or the record of a drain.
type row interface {
	cluster.Node | cluster.Drain | cluster.Job | cluster.Allocation | cluster.Evaluation
}

// diffRow returns the field in which two rows differ, or the empty string. It compares the decision
// fields and those in also.
func diffRow[T row](got, want *T, also ...string) string {
	switch {
	case got == want:
		return ""
	case got == nil:
		return nameOf(want) + " is missing"
	case want == nil:
		return nameOf(got) + " exists, but was deleted or never written"
	}
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	d := diff(g, w)
	for _, f := range also {
		if d == "" {
			d = in(f, diff(g.FieldByName(f), w.FieldByName(f)))
		}
	}
	if d == "" {
		return ""
	}
	return nameOf(want) + ": " + strings.TrimPrefix(d, ".")
}

// diff returns the field in which two values differ, as ".Field is this, want that", or the empty
// string. Times are equal if they are the same instant.
func diff(got, want reflect.Value) string {
	if t, is := reflect.TypeAssert[time.Time](want); is {
		if g, _ := reflect.TypeAssert[time.Time](got); t.Equal(g) {
			return ""
		}
		return differs(got, want)
	}
	switch want.Kind() {
	case reflect.Pointer:
		switch {
		case got.Pointer() == want.Pointer():
			return ""
		case got.IsNil() || want.IsNil():
			return differs(got, want)
		}
		return diff(got.Elem(), want.Elem())
	case reflect.Slice:
		if got.Len() != want.Len() {
			return fmt.Sprintf(" has %d items, want %d", got.Len(), want.Len())
		}
		for i := range want.Len() {
			if d := diff(got.Index(i), want.Index(i)); d != "" {
				return fmt.Sprintf("[%d]%s", i, d)
			}
		}
		return ""
	case reflect.Struct:
		for _, f := range decisionFieldsOf(want.Type()) {
			at, _ := want.Type().FieldByName(f)
			if d := diff(got.FieldByIndex(at.Index), want.FieldByIndex(at.Index)); d != "" {
				return in(f, d)
			}
		}
		return ""
	}
	if want.Comparable() && got.Equal(want) || reflect.DeepEqual(got.Interface(), want.Interface()) {
		return ""
	}
	return differs(got, want)
}

// in names the field with the difference.
func in(field, d string) string {
	if d == "" {
		return ""
	}
	return "." + field + d
}

func differs(got, want reflect.Value) string {
	return fmt.Sprintf(" is %s, want %s", show(got), show(want))
}

// show formats a value for people, and never shows an address.
func show(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Map && v.IsNil():
		return "nil"
	case v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct:
		return "set"
	case v.Kind() == reflect.Pointer:
		return show(v.Elem())
	case v.Kind() == reflect.String:
		return fmt.Sprintf("%q", v)
	}
	if t, is := v.Interface().(time.Time); is {
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v.Interface())
}

// nameOf is the row's kind and id.
func nameOf[T row](r *T) string {
	if r == nil {
		return "nil"
	}
	switch r := any(r).(type) {
	case *cluster.Node:
		return fmt.Sprintf("node %s", r.ID)
	case *cluster.Drain:
		return fmt.Sprintf("drain %s", r.ID)
	case *cluster.Job:
		return fmt.Sprintf("job %s", r.Key())
	case *cluster.Allocation:
		return fmt.Sprintf("allocation %s", r.ID)
	case *cluster.Evaluation:
		return fmt.Sprintf("evaluation %s", r.ID)
	}
	return "row"
}
