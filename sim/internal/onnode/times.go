package onnode

import (
	"reflect"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// checkTimes judges N4 for a record: its times on the boot clock have passed in this boot. The end of
// the wait for a restart may come, after the wait that the restart policy permits.
func checkTimes(j *Judge, n *machine.Node, a *alloc, r *client.Record) {
	now := j.now.Sub(n.Machine().BootedAt())
	eachTime(reflect.ValueOf(r).Elem(), "", func(name string, at time.Duration) {
		if at > now && name != restartAt {
			j.find("N4 a time of another boot", r.Alloc.ID, "its record has %s %s, and the machine has run for %s", name, at, now)
		}
	})
	for _, t := range r.Tasks {
		policy := a.group().RestartPolicyOf(a.task(t.State.Name), r.Alloc.JobType())
		wait := max(policy.Delay, policy.Interval)
		if t.Phase == client.PhaseBackoff && t.RestartAt-now > bounded(wait) {
			j.find("N4 a time of another boot", r.Alloc.ID, "%s restarts after %s, and its policy permits a wait of %s", t.State.Name, t.RestartAt-now, wait)
		}
	}
}

// restartAt is the name of the field with the end of a wait.
const restartAt = "RestartAt"

// eachTime calls do with each duration in the structs of a record, by its name.
func eachTime(of reflect.Value, name string, do func(name string, at time.Duration)) {
	switch {
	case of.Type() == reflect.TypeFor[time.Duration]():
		do(name, time.Duration(of.Int()))
	case of.Type() == reflect.TypeFor[client.Record]() || of.Type() == reflect.TypeFor[client.TaskRecord]():
		for i := range of.NumField() {
			eachTime(of.Field(i), of.Type().Field(i).Name, do)
		}
	case of.Type() == reflect.TypeFor[[]client.TaskRecord]():
		for i := range of.Len() {
			eachTime(of.Index(i), name, do)
		}
	}
}
