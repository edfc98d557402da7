package demo

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Every duration of a job is scaled, except the one after the loss of a connection, which simulated
// clients do not have. A duration without a scale would make drains of the demonstration wait.
func TestScale_everyDuration(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Migrate: &cluster.MigrateStrategy{}, Tasks: []*cluster.Task{{}}}}}
	fields := map[string]time.Duration{}
	var walk func(path string, v reflect.Value, visit func(string, reflect.Value))
	walk = func(path string, v reflect.Value, visit func(string, reflect.Value)) {
		switch {
		case v.Type() == reflect.TypeFor[time.Duration]():
			visit(path, v)
		case v.Kind() == reflect.Pointer && !v.IsNil():
			walk(path, v.Elem(), visit)
		case v.Kind() == reflect.Slice && v.Len() > 0:
			walk(path, v.Index(0), visit)
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
			}
		}
	}
	walk("Job", reflect.ValueOf(job), func(_ string, v reflect.Value) { v.SetInt(int64(time.Minute)) })
	walk("Job", reflect.ValueOf(scale(60).job(job)), func(path string, v reflect.Value) { fields[path] = time.Duration(v.Int()) })
	must.Greater(t, 4, len(fields))
	for path, d := range fields {
		if strings.HasSuffix(path, ".StopOnClientAfter") {
			continue
		}
		must.Eq(t, time.Second, d, must.Sprint(path))
	}
}
