package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A driver reports its health once. Its last report counts when the stream is opened again, and when
// the next client takes the process over. It does not count for another process.
func TestReports_driver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := records(t)
		table := record.NewTable[pluginReport](store, "report", reportRecords)
		launch := func(own *double, pid int) (*posted, *drivers) {
			rows, _, err := store.All()
			must.NoError(t, err)
			kept, err := table.Select(rows)
			must.NoError(t, err)
			p := &driverProgram{&pluginProgram{file: "once", reports: table, logger: quiet()}}
			for _, row := range kept {
				p.report = row.Value
			}
			events := new(posted)
			d := newDrivers(map[string]program[driverInstance]{
				"once": &programOf[driverInstance]{[]driverInstance{p.withReports(own, host.Record{Process: process.Identity{PID: pid}})}},
			}, 8, events, newTrust(new(scripted), new(home), false, quiet()), quiet())
			must.NoError(t, launched(t.Context(), d, "once").Err)
			synctest.Wait()
			return events, d
		}
		own := newDouble()
		own.once = true
		events, d := launch(own, 1)
		must.Eq(t, []string{"once 1 is healthy: "}, events.take())
		own.streams <- errors.New("broken")
		synctest.Wait()
		must.Eq(t, []string{"once 1 is unhealthy: the driver does not report its health: broken"}, events.take())
		time.Sleep(minReopen)
		synctest.Wait()
		must.Eq(t, 2, own.streamed)
		must.SliceEmpty(t, events.take(), must.Sprint("the stream may fail at once"))
		time.Sleep(reportWait)
		synctest.Wait()
		must.Eq(t, []string{"once 1 is healthy: "}, events.take())
		d.detach()

		events, d = launch(own, 1) // the next client
		time.Sleep(reportWait)
		synctest.Wait()
		must.Eq(t, []string{"once 1 is healthy: "}, events.take())
		d.detach()

		events, d = launch(own, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		must.SliceEmpty(t, events.take(), must.Sprint("the report is from another process"))
		d.detach()
	})
}

// A device plugin reports its devices once. Its last report counts when the stream is opened again.
// The next client gets the valid devices of the report.
func TestReports_devices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := records(t)
		table := record.NewTable[pluginReport](store, "report", reportRecords)
		p := &deviceProgram{&pluginProgram{file: "once", reports: table, logger: quiet()}}
		one := &deviceDouble{double: newDouble(), groups: []*cluster.DeviceGroup{toys("d1", "")}}
		one.once = true
		events := new(posted)
		d := newDevices(map[string]program[deviceInstance]{"once": &programOf[deviceInstance]{[]deviceInstance{p.withReports(one, host.Record{})}}}, 8, events, quiet())
		must.NoError(t, launched(t.Context(), d, "once").Err)
		synctest.Wait()
		has := `once 1 has acme/toy/t1/d1 and ignores: the device "" of the group "acme/toy/t1" is ignored: its id is empty`
		must.Eq(t, []string{has}, events.take())
		one.streams <- errors.New("broken")
		time.Sleep(minReopen + reportWait)
		synctest.Wait()
		must.Eq(t, []string{"once 1 has broken", has}, events.take())
		d.detach()

		rows, _, err := store.All()
		must.NoError(t, err)
		kept, err := table.Select(rows)
		must.NoError(t, err)
		must.SliceLen(t, 1, kept)
		next := &foundPlugins{devices: map[string]program[deviceInstance]{"once": &deviceProgram{&pluginProgram{report: kept[0].Value}}}}
		must.Eq(t, map[string][]*cluster.DeviceGroup{"once": {toys("d1")}}, next.lastDevices())
	})
}
