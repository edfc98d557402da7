//race:skip one goroutine
package cluster_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// leftOut names the fields that a bare copy lacks. A new field is kept until it is added here,
// because no decision reads it.
var leftOut = map[string]bool{
	"DesiredDescription": true, "ClientDescription": true, "ModifyTime": true, "ModifyIndex": true, "AllocModifyIndex": true,
	"TaskStates": true, "AwaySince": true, "StartTook": true,
	"DeploymentStatus.Timestamp": true, "DeploymentStatus.ModifyIndex": true,
	"DataIn.Why": true, "DataIn.Bytes": true, "DataIn.Skipped": true, "DataIn.StartedAt": true,
	"DataOut.Why": true, "DataOut.Bytes": true, "DataOut.Skipped": true, "DataOut.StartedAt": true,
}

func TestAllocation_Bare(t *testing.T) {
	t.Parallel()
	full := func() *cluster.Allocation {
		healthy := true
		return &cluster.Allocation{
			DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy},
			DataIn:           &cluster.DataMove{}, DataOut: &cluster.DataMove{},
		}
	}
	must.Eq(t, full(), full().Bare())
	must.Eq(t, &cluster.Allocation{}, (&cluster.Allocation{}).Bare())
	must.False(t, full().EqualForDecisions(&cluster.Allocation{}))
	must.False(t, (&cluster.Allocation{}).EqualForDecisions(full()))
	must.False(t, full().EqualForDecisions(&cluster.Allocation{DeploymentStatus: &cluster.DeploymentStatus{}}))

	met := 0
	for path, change := range fieldsOf(reflect.TypeFor[cluster.Allocation]()) {
		a := full()
		change(reflect.ValueOf(a).Elem())
		must.NotEq(t, full(), a, must.Sprint(path))
		if leftOut[path] {
			met++
			must.Eq(t, full(), a.Bare(), must.Sprint(path))
		} else {
			must.Eq(t, a, a.Bare(), must.Sprint(path))
		}
		must.Eq(t, leftOut[path], a.EqualForDecisions(full()), must.Sprint(path))
		must.Eq(t, leftOut[path], full().EqualForDecisions(a), must.Sprint(path))
	}
	must.Eq(t, len(leftOut), met)
}

// fieldsOf are the fields of a struct and of those in it, by path, each with what
// changes it.
func fieldsOf(s reflect.Type) map[string]func(reflect.Value) {
	fields := map[string]func(reflect.Value){}
	for i := range s.NumField() {
		f := s.Field(i)
		inner := f.Type
		if inner == reflect.TypeFor[*cluster.DeploymentStatus]() || inner == reflect.TypeFor[*cluster.DataMove]() {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			for path, change := range fieldsOf(inner) {
				fields[f.Name+"."+path] = func(v reflect.Value) { change(reflect.Indirect(v.Field(i))) }
			}
			continue
		}
		fields[f.Name] = func(v reflect.Value) { changeValue(v.Field(i)) }
	}
	return fields
}

func changeValue(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString("changed")
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(7, 0)))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		panic("a field of an unsupported kind:  " + v.Type().String())
	}
}
