package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Each wait after a failure grows only with failures in a row: a trouble lasts long, is over, and comes again for an
// instant. Then the client recovers as soon as after its first failure.
func TestAgain_waitsStartFromTheirLeast(t *testing.T) {
	exits := func(n *node) { n.exit(n.live("web")[0], 1, 0) }
	down := errors.New("no")
	for name, c := range map[string]struct {
		// set begins or ends the trouble. need, with the trouble, is an event after which the client needs an effect,
		// and done reports that it had the effect.
		set  func(n *node, trouble bool)
		need func(n *node)
		done func(n *node) bool
		// within is the time of some retries. The longest wait of a single one is longer.
		within time.Duration
	}{
		"records": {
			set: func(n *node, trouble bool) { n.fullDisk = trouble }, need: exits,
			done: func(n *node) bool { return len(n.unsaved) == 0 }, within: 5 * client.DefaultMinRetry,
		},
		"reports": {
			set:  func(n *node, trouble bool) { n.silent = trouble },
			need: func(n *node) { n.place(allocation(cluster.AllocID(fmt.Sprint("b", n.index)), mainTask("log"))) },
			done: func(n *node) bool { return len(n.servers) == len(n.allocs) }, within: 5 * client.DefaultMinRetry,
		},
		"drivers": {
			set: func(n *node, trouble bool) {
				if n.driver.launchError = nil; trouble {
					n.driver.launchError = down
				}
			},
			need: (*node).killDriver, done: func(n *node) bool { return !n.driver.down }, within: 2*client.DefaultMinRelaunch + time.Second,
		},
		"device plugins": {
			set: func(n *node, trouble bool) {
				if n.devices.process.launchError = nil; trouble {
					n.devices.process.launchError = down
				}
			},
			need: func(n *node) { n.killDevicePlugin(n.devices.process.generation) },
			done: func(n *node) bool { return !n.devices.process.down }, within: 2*client.DefaultMinRelaunch + time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.install("d1")
			n.place(allocation("a", mainTask("web")))
			for range 3 {
				for _, lasts := range []time.Duration{time.Hour, 600 * time.Millisecond} {
					n.run(2 * time.Hour)
					must.True(t, c.done(n), must.Sprint(n.storyOf()))
					c.set(n, true)
					c.need(n)
					n.run(lasts)
					must.False(t, c.done(n), must.Sprint(n.storyOf()))
					c.set(n, false)
				}
				n.run(c.within)
				must.True(t, c.done(n), must.Sprint(n.storyOf()))
			}
		})
	}
}

// Starts that a dying driver has interrupted count against the restart policy only if they are in a row. Bug: no
// test had one in each of several restarts.
func TestAgain_interruptedStarts(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: 2 * time.Hour, code: 1}}}
	n.place(allocation("a", mainTask("web")))
	for i := range 6 {
		sc := n.scripts["web"]
		sc.startErrors = []error{gone("StartTask"), gone("StartTask"), gone("StartTask")}
		n.scripts["web"] = sc
		reaches(n, "a", cluster.ClientRunning, 2*time.Hour+time.Minute)
		must.SliceEmpty(t, n.scripts["web"].startErrors, must.Sprint(i))
	}
}

// During a stop the client notices the end of the task soon, although the driver has answered Wait too early
// before, as often as the task needed time. Bug: no test had a task that needed more than some seconds.
func TestAgain_waitAnswersEarlyForLong(t *testing.T) {
	for _, takes := range []time.Duration{5, 11, 17, 23, 29, 41, 59, 83, 113} {
		n := newNode(t)
		n.scripts["web"] = early(func(s *script) { s.stopWaits, s.stopTakes = false, takes*time.Second })
		n.place(allocation("a", &cluster.Task{Name: "web", KillTimeout: 10 * time.Minute}))
		n.run(20 * time.Second)
		leaves(n, "a", takes*time.Second)
		reaches(n, "a", cluster.ClientComplete, 4*time.Second)
		must.StrContains(t, n.messages("a", "web"), "Exit Code: 7")
	}
}

// Each field of a driver's report that changes alone is published. Bug: no test changed only the attributes.
func TestAgain_eachFieldOfAFingerprintIsPublished(t *testing.T) {
	first := driver.Fingerprint{Health: driver.Healthy, Description: "fine", Attributes: map[string]string{"a": "1", "b": "1"}}
	changes := map[string][]driver.Fingerprint{
		"Health":      {{Health: driver.Unhealthy}, {Health: driver.Undetected}},
		"Description": {{Description: "better"}, {Description: ""}},
		"Attributes":  {{Attributes: map[string]string{"a": "2", "b": "1"}}, {Attributes: map[string]string{"a": "1"}}, {}},
	}
	published := reflect.TypeFor[cluster.DriverInfo]()
	must.Eq(t, []string{"Attributes", "Detected", "Healthy", "HealthDescription", "UpdateTime"}, fields(published), must.Sprint("a new field needs a case"))
	for _, field := range fields(reflect.TypeFor[driver.Fingerprint]()) {
		must.SliceNotEmpty(t, changes[field], must.Sprint("a new field needs a case: ", field))
		for i, change := range changes[field] {
			t.Run(fmt.Sprint(field, i), func(t *testing.T) {
				n := newNode(t)
				n.run(time.Minute)
				n.core.Fingerprint("mock", n.driver.generation, first)
				n.run(time.Minute)
				next := first
				reflect.ValueOf(&next).Elem().FieldByName(field).Set(reflect.ValueOf(change).FieldByName(field))
				n.core.Fingerprint("mock", n.driver.generation, next)
				at := n.time().Wall
				n.run(time.Minute)
				must.Eq(t, &cluster.DriverInfo{
					Attributes: next.Attributes, Detected: next.Health != driver.Undetected, Healthy: next.Health == driver.Healthy,
					HealthDescription: next.Description, UpdateTime: at,
				}, health(n))
				count := len(n.published)
				n.core.Fingerprint("mock", n.driver.generation, next)
				n.run(time.Minute)
				must.SliceLen(t, count, n.published, must.Sprint("nothing has changed"))
			})
		}
	}
}

// fields returns the names of the fields of a struct.
func fields(kind reflect.Type) (names []string) {
	for i := range kind.NumField() {
		names = append(names, kind.Field(i).Name)
	}
	return names
}

// The servers have lost a field of a report, as after the restore of an older state. A running client reports it
// again if a decision depends on it, and the next client reports all of them. Bug: no test lost only a verdict.
func TestAgain_eachLostFieldIsReported(t *testing.T) {
	const never, later, now = 0, 1, 2 // when the client reports the field again
	cases := map[string]int{
		"Alloc": never, "Node": never, "At": never, // they name the report
		"HealthyAt":    never, // it belongs to Healthy
		"VolumeHolds":  never, // the allocation has none
		"DataOut":      never, // a row without it is from servers of a lower version
		"ClientStatus": now, "Healthy": now,
		"ClientDescription": later, "TaskStates": later, "DataIn": later,
	}
	for _, field := range fields(reflect.TypeFor[cluster.AllocReport]()) {
		when, is := cases[field]
		must.True(t, is, must.Sprint("a new field needs a case: ", field))
		for _, restart := range []bool{false, true} {
			if when == never || when == later && !restart {
				continue
			}
			t.Run(fmt.Sprint(field, " restart=", restart), func(t *testing.T) {
				n := newDisks(t)
				n.data.answers = []dataScript{moved("p", "p")}
				n.place(disk("r", "p"))
				reaches(n, "r", cluster.ClientRunning, 10*time.Minute)
				before := n.servers["r"]
				lost := before
				value := reflect.ValueOf(&lost).Elem().FieldByName(field)
				must.False(t, value.IsZero(), must.Sprint("the report has no ", field))
				value.SetZero()
				n.servers["r"] = lost
				if restart {
					n.crash()
				}
				n.index++
				n.allocs[0] = n.allocs[0].Copy()
				n.allocs[0].AllocModifyIndex = n.index
				n.answer()
				n.run(time.Minute)
				before.At = n.servers["r"].At
				must.Eq(t, before, n.servers["r"])
			})
		}
	}
}

// Two verdicts differ: that of the servers is from an older state.
func TestAgain_anotherVerdict(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	must.True(t, *n.servers["a"].Healthy)
	other, r := false, n.servers["a"]
	r.Healthy = &other
	n.servers["a"] = r
	n.index++
	n.allocs[0] = n.allocs[0].Copy()
	n.allocs[0].AllocModifyIndex = n.index
	n.answer()
	n.run(time.Minute)
	must.True(t, *n.servers["a"].Healthy)
}

// Events of the servers come before one step in each order. None hides another one. Bug: no test had an answer
// with changes and one without between two steps.
func TestAgain_eachOrderOfAnswers(t *testing.T) {
	for _, order := range [][]string{
		{"changes", "nothing", "contact"}, {"changes", "contact", "nothing"}, {"nothing", "changes", "contact"},
		{"nothing", "contact", "changes"}, {"contact", "changes", "nothing"}, {"contact", "nothing", "changes"},
		{"changes", "nothing", "changes", "nothing"}, {"nothing", "nothing", "changes", "nothing", "contact"},
	} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			n := newRunning(t, script{}, time.Minute)
			var placed []cluster.AllocID
			contact := n.boot - time.Second
			for _, event := range order {
				n.index++
				switch event {
				case "contact":
					n.core.Contact(guard.Contact{Sent: contact}, guard.Contact{Sent: n.boot})
				case "nothing":
					n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index})
				case "changes":
					id := cluster.AllocID(fmt.Sprint("b", n.index))
					placed = append(placed, id)
					a := allocation(id, mainTask("web"))
					a.AllocModifyIndex = n.index
					n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index, Allocs: []*cluster.Allocation{a}})
				}
			}
			n.run(time.Minute)
			for _, id := range slices.Concat([]cluster.AllocID{"a"}, placed) {
				must.EqOp(t, cluster.ClientRunning, n.status(id), must.Sprint(id))
			}
		})
	}
}
