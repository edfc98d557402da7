package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// The driver answers WaitTask as soon as a task is being stopped. The client used to report the
// allocation as complete while the task ran for three more seconds, with exit code 0.
func TestNode_waitAnswersEarly(t *testing.T) {
	t.Parallel()
	f := newFixtureOf(t, nil, true)
	f.place(three(f))
	f.run(30 * time.Second)
	f.stop("a1")
	f.run(3 * time.Second)
	must.Len(t, 2, tasks(f)) // the shutdown delay and three seconds are not over
	must.EqOp(t, cluster.ClientRunning, f.row("a1").ClientStatus)
	f.settle()
	must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.SliceEmpty(t, tasks(f))
	for name, end := range map[string]string{"web": "Exit Code: 143, Signal: 15", "proxy": "Exit Code: 137, Signal: 9"} {
		must.EqOp(t, end, terminated(f, "a1", name))
	}
}

// terminated returns the text of the last end of a task in the record.
func terminated(f *fixture, id cluster.AllocID, task string) (text string) {
	for _, t := range f.node.Record(id).Tasks {
		for _, e := range t.State.Events {
			if t.State.Name == task && e.Type == "Terminated" {
				text = e.Message
			}
		}
	}
	return text
}

// The client dies at each effect over a driver with containers.
func TestNode_containersCrashAtEachEffect(t *testing.T) {
	t.Parallel()
	plain := newFixtureOf(t, nil, true)
	before := plain.effects
	story(plain)
	for at := before + 1; at <= plain.effects; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			f := newFixtureOf(t, nil, true)
			f.dieAt = at
			story(f)
		})
	}
}

// A driver with containers fails at each call. The grace ends while StopTask has no answer, or
// InspectTask fails after WaitTask has answered.
func TestNode_containersFailAtEachCall(t *testing.T) {
	t.Parallel()
	plain, calls := newFixtureOf(t, nil, true), 0
	plain.fault = func(scripted.Call) scripted.Fault { calls++; return scripted.Fault{} }
	story(plain)
	failed := &driver.Error{Class: driver.Recoverable, Call: "call", Err: errors.New("not now")}
	for name, fault := range map[string]scripted.Fault{
		"crash": {Action: scripted.Crash}, "crash after": {Action: scripted.CrashAfter}, "hang": {Action: scripted.Hang},
		"hang after": {Action: scripted.HangAfter}, "fail": {Action: scripted.Fail, Err: failed}, "delay": {Delay: 7 * time.Second},
	} {
		for at := 1; at <= calls; at++ {
			t.Run(fmt.Sprint(name, "/", at), func(t *testing.T) {
				f, n := newFixtureOf(t, nil, true), 0
				f.fault = func(c scripted.Call) scripted.Fault {
					if n++; n == at && c.Name != scripted.CallFingerprint {
						return fault
					}
					return scripted.Fault{}
				}
				f.place(three(f))
				f.run(6 * time.Minute)
				f.stop("a1")
				f.settle()
				must.True(t, f.row("a1").ClientTerminal(), must.Sprint(f.row("a1").ClientStatus))
				must.SliceEmpty(t, tasks(f))
			})
		}
	}
}

// Random nodes whose driver keeps tasks in containers.
func TestNode_containersRandom(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playRandom(t, rand.New(rand.NewPCG(seed, 19)), true) }) {
			return
		}
	}
}
