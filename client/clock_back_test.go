package client_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
)

// fullRecord returns a record with all its parts, and its times on the boot clock by name.
func fullRecord() (*client.Record, map[string]reflect.Value) {
	r := &client.Record{DataIn: new(client.DataIn), DataOut: new(client.DataOut), Tasks: make([]client.TaskRecord, 2)}
	times := map[string]reflect.Value{}
	bootTimes(reflect.ValueOf(r).Elem(), "", times)
	return r, times
}

// No time of a record is later than the boot clock after the clock went back, and after a reboot. The test finds the
// fields by reflection, and sets each one alone. Bug: no test had the last verdict, nor the moves of data.
func TestRecord_noTimeIsInTheFuture(t *testing.T) {
	t.Parallel()
	const now, future = time.Hour, 2 * time.Hour
	_, names := fullRecord()
	for _, name := range []string{".History.TrueAt", ".DataIn.EndedAt", ".DataOut.Since", ".Tasks[1].DeadSince", ".Tasks[1].RestartAt"} {
		must.MapContainsKey(t, names, name)
	}
	for name := range names {
		r, times := fullRecord()
		times[name].SetInt(int64(future))
		client.Reboot(r, "boot-2", now)
		must.LessEq(t, int64(now), times[name].Int(), must.Sprint(name, " after a reboot"))

		r, times = fullRecord()
		times[name].SetInt(int64(future))
		if strings.HasSuffix(name, ".RestartAt") { // the end of a wait may be in the future, but not beside a begin in the future
			times[strings.Replace(name, ".RestartAt", ".WindowBegan", 1)].SetInt(int64(future))
		}
		must.True(t, client.NotAfter(r, now), must.Sprint(name, " must be written"))
		for other, at := range times {
			must.LessEq(t, int64(now), at.Int(), must.Sprint(other, " after the clock went back"))
		}
		must.False(t, client.NotAfter(r, now))
	}
}

// The boot clock goes back after a verdict, and the client restarts. The allocation recovers from a crash as fast as
// with another clock. Bug: no test had a verdict in the future, which would prevent the next one until then.
func TestHealth_clockGoesBack(t *testing.T) {
	t.Parallel()
	n, _ := looping(t, time.Hour)
	n.run(50 * time.Minute)
	n.exit(n.live("web")[0], 1, 0)
	n.run(time.Minute)
	must.True(t, *n.servers["a"].Healthy, must.Sprint("the second verdict true"))
	n.boot -= 30 * time.Minute
	restarts(n, time.Second)
	must.True(t, *n.servers["a"].Healthy)
	n.exit(n.live("web")[0], 1, 0)
	n.run(500 * time.Millisecond)
	must.False(t, *n.servers["a"].Healthy)
	n.run(time.Minute)
	must.True(t, *n.servers["a"].Healthy)
}
