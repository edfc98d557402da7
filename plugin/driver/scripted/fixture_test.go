package scripted_test

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// virtual is a clock that the test moves. Functions of one time run in an order that the seed
// draws, as in the simulator.
type virtual struct {
	now    time.Time
	ties   *rand.Rand
	events alarm.Heap[*event]
	added  uint64
}

type event struct {
	tie, sequence uint64
	do            func()
}

// Compare orders the events of one time.
func (e *event) Compare(o *event) int {
	return cmp.Or(cmp.Compare(e.tie, o.tie), cmp.Compare(e.sequence, o.sequence))
}

func newVirtual(seed uint64) *virtual {
	return &virtual{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ties: rand.New(rand.NewPCG(seed, 1))}
}

func (v *virtual) Now() time.Time { return v.now }

func (v *virtual) After(d time.Duration, do func()) (cancel func()) {
	v.added++
	e := &event{v.ties.Uint64(), v.added, do}
	v.events.Set(e, v.now.Add(max(d, 0)))
	return func() { v.events.Remove(e) }
}

// pass runs the functions that are due within the duration.
func (v *virtual) pass(d time.Duration) {
	end := v.now.Add(d)
	for at := v.events.First(); !at.IsZero() && !at.After(end); at = v.events.First() {
		v.now = at
		e, _ := v.events.PopFirst(at)
		e.do()
	}
	v.now = end
}

// node is a machine with one driver and one task, which records the answers of the calls.
type node struct {
	*testing.T
	clock   *virtual
	machine *scripted.Machine
	program *scripted.Program
	driver  *scripted.Driver
}

// cgroup is the cgroup of all tasks of a node.
const cgroup = "tasks/one"

func newNode(t *testing.T, o scripted.Options) *node {
	clock := newVirtual(1)
	n := &node{T: t, clock: clock, machine: scripted.NewMachine(clock)}
	n.machine.MakeCgroup(cgroup)
	n.program = n.machine.Install("double", o)
	n.launch()
	return n
}

// launch starts a generation of the driver.
func (n *node) launch() {
	n.Helper()
	launched := 0
	n.program.Launch(func(d *scripted.Driver, err error) {
		must.NoError(n, err)
		n.driver = d
		launched++
	})
	n.clock.pass(0)
	must.EqOp(n, 1, launched)
}

// script makes options whose tasks all follow the script, in the cgroup of the client.
func script(s scripted.Script) scripted.Options {
	return scripted.Options{
		Capabilities: driver.Capabilities{HostCgroup: true, SendSignals: true, Exec: true},
		Script:       func(*driver.TaskConfig) scripted.Script { return s },
	}
}

func task(id driver.TaskID) *driver.TaskConfig {
	return &driver.TaskConfig{ID: id, Name: string(id), Resources: driver.Resources{Cgroup: cgroup}}
}

// reply is the answer to a call.
type reply[T any] struct {
	count int
	value T
	err   error
	at    time.Time
}

// call begins a call, and checks that the answer does not come before the call returns.
func call[T any](n *node, begin func(reply func(T, error))) *reply[T] {
	n.Helper()
	r := &reply[T]{}
	begin(func(v T, err error) {
		r.count++
		r.value, r.err, r.at = v, err, n.clock.now
	})
	must.Zero(n, r.count, must.Sprint("the answer came before the call returned"))
	return r
}

// callError is call for a call that has only an error.
func callError(n *node, begin func(reply func(error))) *reply[bool] {
	n.Helper()
	return call(n, func(reply func(bool, error)) { begin(func(err error) { reply(true, err) }) })
}

func (n *node) start(id driver.TaskID) *reply[driver.Handle] {
	n.Helper()
	return call(n, func(reply func(driver.Handle, error)) { n.driver.Start(task(id), reply) })
}

// started starts a task at once and returns its first process.
func (n *node) started(id driver.TaskID) (driver.Handle, scripted.Process) {
	n.Helper()
	r := n.start(id)
	n.clock.pass(0)
	must.NoError(n, r.err)
	must.EqOp(n, 1, r.count)
	return r.value, n.main(id)
}

// main returns the newest first process of a task.
func (n *node) main(id driver.TaskID) scripted.Process {
	n.Helper()
	processes := n.machine.Processes()
	for i := range processes {
		if p := processes[len(processes)-1-i]; p.Task == id && p.Kind == scripted.TaskProcess {
			return p
		}
	}
	n.Fatalf("the task %s has never had a process", id)
	return scripted.Process{}
}

func (n *node) wait(id driver.TaskID) *reply[driver.ExitResult] {
	n.Helper()
	return call(n, func(reply func(driver.ExitResult, error)) { n.driver.Wait(id, reply) })
}

func (n *node) stop(id driver.TaskID, grace time.Duration, signal string) *reply[bool] {
	n.Helper()
	return callError(n, func(reply func(error)) { n.driver.Stop(id, grace, signal, reply) })
}

func (n *node) destroy(id driver.TaskID) *reply[bool] {
	n.Helper()
	return callError(n, func(reply func(error)) { n.driver.Destroy(id, true, reply) })
}

// relaunch kills the driver's process, starts another one and lets it recover a task.
func (n *node) relaunch(id driver.TaskID, h driver.Handle) error {
	n.Helper()
	n.driver.Kill(scripted.ByFault)
	n.launch()
	r := callError(n, func(reply func(error)) { n.driver.Recover(id, h, reply) })
	n.clock.pass(0)
	must.EqOp(n, 1, r.count)
	return r.err
}

// answered checks that a call has one answer, and returns its error.
func answered[T any](n *node, r *reply[T]) error {
	n.Helper()
	must.EqOp(n, 1, r.count, must.Sprint("answers to the call"))
	return r.err
}
