package client_test

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// node is a machine in virtual time: its processes, its disk, its driver and its servers. It
// continues when a core dies, and the next core finds it in this state.
type node struct {
	logger *slog.Logger // of the core, or nil
	t      *testing.T
	boot   time.Duration
	bootID string
	// storyBegan is the time on the boot clock at which the story of this boot begins.
	storyBegan time.Duration
	// wallAtBoot is the time of the clock when the machine booted.
	wallAtBoot time.Time
	// events are future events, in order. They belong to the machine or to one core.
	events []event
	order  int
	// stopped are the notes of a watchdog for the next core.
	stopped []guard.Stopped
	// startTimeouts and maxStarts are options of the next core.
	startTimeouts map[string]time.Duration
	maxStarts     int
	// keepEnded is KeepEnded of the options of the next core.
	keepEnded int
	// scripts state how tasks behave, by name.
	scripts map[string]script
	disk    map[cluster.AllocID]*client.Record
	tasks   map[driver.TaskID]*task
	// ids counts the starts.
	ids int
	// published are the last published facts of the node.
	published []client.NodeFacts
	// devices are the devices of the device plugin "toys". Cores and records do not change this
	// table.
	devices *deviceTable
	// allocs are the allocations that the servers have placed, in the order of placement. index is
	// the index of their last write.
	allocs []*cluster.Allocation
	index  uint64
	// unreadable are the allocations whose job the client cannot read, with the reason.
	unreadable map[cluster.AllocID]string
	// servers is the last report on each allocation.
	servers map[cluster.AllocID]cluster.AllocReport
	// reports are the reports that the servers accepted, as texts.
	reports []string
	story   []string

	// storage are the volumes of the machine.
	storage *fakeStorage
	// data are the ephemeral disks, and version is the cluster version of the servers, or zero.
	data    *fakeData
	version cluster.Version
	// checks decide the results of checks.
	checks *fakeChecks
	// noVolumes: the next core mounts no volumes.
	noVolumes bool
	// kind is the type of the storage plugin, by default a monolith.
	kind cluster.PluginType

	core  *client.Core
	epoch int // counts cores
	// wrap, or nil, returns the shell of the next core.
	wrap   func(*shell) client.Shell
	driver *pluginProcess
	// dyingTakes is how long a driver that is killed takes to die.
	dyingTakes time.Duration
	// ownCgroup: the driver keeps its tasks in groups that the shell cannot kill.
	ownCgroup bool
	// silent: the servers do not accept reports. fullDisk: all saves fail, until the folders of roomAfter
	// allocations are removed if it is positive. brokenDisk: all saves fail. stuck: no allocation can be removed.
	// discarded are the removed allocations.
	silent, fullDisk, brokenDisk, stuck bool
	roomAfter                           int
	discarded                           []cluster.AllocID
	// unsaved are the allocations whose last save failed. The core retries it after some seconds,
	// also when the disk has room again.
	unsaved map[cluster.AllocID]bool
	// calls counts the calls of the driver, by name.
	calls map[string]int
	// counting: the test counts visits, so no step visits all allocations.
	counting bool
	// effects counts started and answered effects. The core dies at number dieAt, or never if it is
	// zero.
	effects, dieAt int
}

type event struct {
	at    time.Duration
	order int
	epoch int // zero: the event also happens after the death of the core
	do    func()
}

type pluginProcess struct {
	node       *node
	plugin     client.Plugin
	generation client.Generation
	down       bool
	// launches counts the starts, and launchError fails all of them.
	launches    int
	launchError error
	// hanging are the calls that the plugin does not answer. They end with its process.
	hanging []func()
}

func (p *pluginProcess) runs(generation client.Generation) bool {
	return !p.down && p.generation == generation
}

// launch starts the process, or takes over the one that runs.
func (p *pluginProcess) launch(s *shell, d time.Duration, reply func(client.Launched), events func(client.Generation)) {
	s.later(d, func() func() {
		if p.launchError != nil {
			p.launches++
			return func() { reply(client.Launched{Err: p.launchError}) }
		}
		reattached := !p.down
		if p.down {
			p.down = false
			p.launches++
			p.node.log("the %s is started", p.plugin.Type)
		}
		generation := p.generation
		return func() {
			reply(client.Launched{Generation: generation, Reattached: reattached, Capabilities: driver.Capabilities{HostCgroup: !p.node.ownCgroup}})
			events(generation)
		}
	})
}

// hang leaves a call without an answer. It ends at a limit (never if the limit is zero), or with the
// process.
func (p *pluginProcess) hang(s *shell, call string, limit time.Duration, reply func(error)) {
	answered := false
	answer := func(err error) {
		if !answered && s.effect() {
			reply(err)
		}
		answered = true
	}
	p.hanging = append(p.hanging, func() { answer(gone(call)) })
	if limit > 0 {
		p.node.after(limit, 0, func() { answer(&driver.Error{Class: driver.Deadline, Call: call, Err: errors.New("no answer")}) })
	}
}

// die ends the process. ended runs before the calls of the process end.
func (p *pluginProcess) die(ended func()) {
	generation := p.generation
	p.generation, p.down = generation+1, true
	p.node.log("the %s dies", p.plugin.Type)
	ended()
	hanging := p.hanging
	p.hanging = nil
	for _, end := range hanging {
		end()
	}
	p.node.core.PluginDown(p.plugin, generation, "panic: a fault of the script")
}

// script is the behaviour of a task. With the zero value the task runs until it gets a signal, and
// then exits with 0 at once.
type script struct {
	startErrors []error       // of the first starts
	startTakes  time.Duration // time until the driver answers
	runs        []ending      // of the first successful starts; the last one applies to all later starts
	stopTakes   time.Duration // time from the signal to the exit
	ignores     bool          // ignores signals
	killsLate   time.Duration // time from the end of the grace to the driver's SIGKILL
	undying     time.Duration // how long SIGKILL takes
	stopError   error
	waitError   error // after the task has been stopped
	waitLate    error // two seconds after the death of the driver, instead of [driver.Gone] at once
	recoverErr  error
	stopLies    bool // the driver answers a stop with success, and does nothing
	// stopWaits: the driver answers a stop when the task has ended, and after stopLag. Otherwise it
	// answers at once. stopCode is the exit code of a task that obeys its signal.
	stopWaits bool
	stopLag   time.Duration
	stopCode  int
	// waitEarly: Wait answers with code 0 when the task gets its signal. waitAgain is the error of
	// Wait after the end of the task, except for the calls that were open then.
	waitEarly bool
	waitAgain error
	// waitUnknown: the answer of such a call has no result.
	waitUnknown bool
	// inspectError is the error of Inspect. inspectRuns: Inspect returns that the task runs, for ever.
	// inspectBare: Inspect returns no exit code.
	inspectError error
	inspectRuns  bool
	inspectBare  bool
	// waitsFor are the processes that keep the task from its end, as Inspect describes them.
	waitsFor string
	// hangsAt is the call that takes no effect and gets no answer, in each process of the driver or in
	// one. "every" is each call except StartTask.
	hangsAt   string
	hangsOnce bool
}

type ending struct {
	after time.Duration // zero is never
	code  int
}

// task is one start that created a process.
type task struct {
	id       driver.TaskID
	alloc    cluster.AllocID
	name     string
	alive    bool
	exit     *driver.ExitResult
	started  time.Duration
	signaled time.Duration
	killed   time.Duration
	ended    time.Duration
	known    bool // to the driver
	waiters  []func(driver.ExitResult, error)
	stoppers []func(error) // the calls that stop it
	emptied  []func(error)
	devices  []string // the devices that it uses
}

// uptime is how long the machine of a test has run. After a reboot it has run for bootTakes, so a time
// of the earlier boot is later than the end of each test.
const (
	uptime    = 400 * 24 * time.Hour
	bootTakes = 20 * time.Second
)

func newNode(t *testing.T) *node {
	n := &node{
		t: t, boot: uptime, storyBegan: uptime, wallAtBoot: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Hour - uptime), bootID: "boot-1", scripts: map[string]script{}, disk: map[cluster.AllocID]*client.Record{}, unsaved: map[cluster.AllocID]bool{},
		calls: map[string]int{}, tasks: map[driver.TaskID]*task{}, servers: map[cluster.AllocID]cluster.AllocReport{},
		devices: &deviceTable{rows: map[string]*deviceRow{}, scripts: map[string]deviceScript{}},
	}
	n.driver = &pluginProcess{node: n, plugin: client.Plugin{Type: client.DriverPlugin, Name: "mock"}, generation: 1}
	n.devices.process = &pluginProcess{node: n, plugin: client.Plugin{Type: client.DevicePlugin, Name: "toys"}, generation: 1}
	n.storage, n.data, n.checks = newStorage(n), newFakeData(n), newFakeChecks()
	n.startCore()
	return n
}

func (n *node) time() client.Time { return client.Time{Boot: n.boot, Wall: n.wallAtBoot.Add(n.boot)} }

// startCore starts a core with the present state of the machine, as after a crash.
func (n *node) startCore() {
	n.epoch++
	n.data.restart()
	var records []*client.Record
	for _, id := range slices.Sorted(maps.Keys(n.disk)) {
		records = append(records, n.disk[id])
	}
	var own client.Shell = &shell{node: n, epoch: n.epoch}
	if n.wrap != nil {
		own = n.wrap(&shell{node: n, epoch: n.epoch})
	}
	core, err := client.New(client.Options{
		Node: "node-1", Shell: own, BootID: n.bootID, Drivers: []string{"mock"}, DevicePlugins: n.devices.plugins(), LastDevices: map[string][]*cluster.DeviceGroup{"toys": n.devices.last}, Records: records,
		StartTimeouts: n.startTimeouts, MaxStarts: n.maxStarts, KeepEnded: n.keepEnded, Version: n.version, Volumes: n.storage.options(n.epoch), Stopped: slices.Clone(n.stopped), Logger: n.logger,
		NewTaskID: func(alloc cluster.AllocID, task string) driver.TaskID {
			n.ids++
			return driver.TaskID(fmt.Sprintf("%s/%s/%d", alloc, task, n.ids))
		},
	})
	must.NoError(n.t, err)
	n.core = core
}

func (n *node) place(a *cluster.Allocation) {
	n.index++
	a.AllocModifyIndex = n.index
	n.allocs = append(n.allocs, a)
	n.answer()
}

// stop stops an allocation, as the servers do.
func (n *node) stop(id cluster.AllocID, change ...func(*cluster.Allocation)) {
	for i, a := range n.allocs {
		if a.ID == id {
			n.index++
			newer := a.Copy()
			newer.DesiredStatus, newer.DesiredDescription, newer.AllocModifyIndex = cluster.DesiredStop, "drained", n.index
			for _, f := range change {
				f(newer)
			}
			n.allocs[i] = newer
		}
	}
	n.log("%s must stop", id)
	n.answer()
}

// answer sends all allocations of the node to the core.
func (n *node) answer() { n.core.Servers(rowsOf(n)) }

// rowsOf returns all allocations of the node, as the servers have them.
func rowsOf(n *node) client.Changes {
	w := client.Changes{ClusterID: "cluster-1", Index: n.index, Version: n.version, Complete: true}
	for _, a := range n.allocs {
		known := a.Copy()
		if r, reported := n.servers[a.ID]; reported {
			known.ClientStatus, known.ClientDescription = r.ClientStatus, r.ClientDescription
			known.TaskStates, known.VolumeHolds = r.TaskStates, r.VolumeHolds
			known.DataIn = r.DataIn
			if known.DataOut == nil {
				known.DataOut = r.DataOut
			}
			known.DeploymentStatus = &cluster.DeploymentStatus{Healthy: r.Healthy}
		}
		w.Known = append(w.Known, a.ID)
		if why := n.unreadable[a.ID]; why != "" {
			known.Job = nil
			w.Unreadable = append(w.Unreadable, client.Unreadable{Alloc: known, Reason: why})
			continue
		}
		w.Allocs = append(w.Allocs, known)
	}
	w.Claims = n.storage.claimed()
	return w
}

// crash kills the core and starts another one.
func (n *node) crash() {
	n.log("the client is killed")
	n.startCore()
}

func (n *node) log(format string, args ...any) {
	n.story = append(n.story, fmt.Sprintf("%8s  ", n.boot-n.storyBegan)+fmt.Sprintf(format, args...))
}

// after schedules an event on the machine. With epoch zero it also happens after the death of the
// core.
func (n *node) after(d time.Duration, epoch int, do func()) {
	n.order++
	n.events = append(n.events, event{at: n.boot + d, order: n.order, epoch: epoch, do: do})
	slices.SortFunc(n.events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
}

// run lets time pass.
func (n *node) run(d time.Duration) {
	end := n.boot + d
	for steps := 0; ; steps++ {
		must.Less(n.t, 200_000, steps, must.Sprint("the core does not come to rest: ", strings.Join(last(n.story, 30), "\n")))
		if n.dieAt > 0 && n.effects >= n.dieAt {
			n.dieAt = 0
			n.crash()
			n.answer() // of the servers to the new client
		}
		n.storage.post()
		select {
		case <-n.core.Woken(): // before the step, so that no second step hides what the first one has missed
		default:
		}
		wake := n.core.Step(n.time())
		if len(n.core.Woken()) > 0 {
			continue
		}
		visitAll(n, wake)
		if n.dieAt > 0 && n.effects >= n.dieAt {
			continue
		}
		next := min(wake, end)
		if len(n.events) > 0 {
			next = min(next, n.events[0].at)
		}
		n.boot = max(n.boot, next)
		ran := false
		for len(n.events) > 0 && n.events[0].at <= n.boot {
			e := n.events[0]
			n.events = n.events[1:]
			if e.epoch == 0 || e.epoch == n.epoch {
				ran = true
				e.do()
			}
			if len(n.core.Woken()) > 0 || n.dieAt > 0 && n.effects >= n.dieAt {
				break
			}
		}
		if !ran && n.boot >= end && wake > n.boot {
			return
		}
	}
}

// visitAll checks that the last step has visited all allocations that had something to do: a step
// that visits all of them changes nothing, begins no effect, and requests no earlier step.
func visitAll(n *node, wake time.Duration) {
	if n.counting {
		return
	}
	begun, changes := n.effects, client.CountChanges(n.core)
	client.MarkAll(n.core)
	must.GreaterEq(n.t, wake, n.core.Step(n.time()), must.Sprint("a time that the core has missed, at ", n.boot))
	must.EqOp(n.t, begun, n.effects, must.Sprint("an effect that the core has missed, at ", n.boot))
	must.EqOp(n.t, changes, client.CountChanges(n.core), must.Sprint("a change that the core has missed, at ", n.boot))
}

func last(lines []string, count int) []string { return lines[max(0, len(lines)-count):] }

func (n *node) taskOf(p *task) *cluster.Task {
	for _, a := range n.allocs {
		for _, t := range a.Job.TaskGroups[0].Tasks {
			if t.Name == p.name {
				return t
			}
		}
	}
	return nil
}

// reboot restarts the machine: all processes are gone, and the clock starts again.
func (n *node) reboot() {
	n.log("the machine restarts")
	for _, p := range n.live("") {
		p.alive, p.exit, p.ended = false, &driver.ExitResult{Unknown: true}, n.boot
	}
	n.tasks = map[driver.TaskID]*task{}
	n.events = nil
	n.wallAtBoot = n.time().Wall
	n.boot, n.storyBegan, n.bootID = bootTakes, bootTakes, n.bootID+"'"
	n.storage.reboot()
	n.driver.generation, n.driver.down, n.driver.hanging = n.driver.generation+1, false, nil
	n.devices.reboot()
	n.startCore()
}

func (n *node) live(name string) (live []*task) {
	for _, id := range slices.Sorted(maps.Keys(n.tasks)) {
		if t := n.tasks[id]; t.alive && (name == "" || t.name == name) {
			live = append(live, t)
		}
	}
	return live
}

// exit ends a process.
func (n *node) exit(t *task, code, signal int) {
	if !t.alive {
		return
	}
	t.alive, t.ended = false, n.boot
	t.exit = &driver.ExitResult{Code: code, Signal: signal}
	n.log("%s exits with %d", t.id, code)
	for _, w := range t.waiters {
		if err := n.scripts[t.name].waitError; err != nil && t.signaled != 0 {
			w(driver.ExitResult{Code: -1}, err)
		} else {
			w(*t.exit, nil)
		}
	}
	t.waiters = nil
	answerStops(n, t)
	for _, e := range t.emptied {
		e(nil)
	}
	t.emptied = nil
}

// kill sends SIGKILL.
func (n *node) kill(t *task) {
	if !t.alive || t.killed != 0 {
		return
	}
	t.killed = n.boot
	if d := n.scripts[t.name].undying; d > 0 {
		n.after(d, 0, func() { n.exit(t, 137, 9) })
		return
	}
	n.exit(t, 137, 9)
}

// killDriver ends the process of the driver. Its tasks continue to run.
func (n *node) killDriver() {
	n.driver.die(func() {
		for _, id := range slices.Sorted(maps.Keys(n.tasks)) {
			t := n.tasks[id]
			t.known = false
			for _, w := range t.waiters {
				if late := n.scripts[t.name].waitLate; late != nil {
					n.after(2*time.Second, n.epoch, func() { w(driver.ExitResult{}, late) })
				} else {
					w(driver.ExitResult{}, gone("WaitTask"))
				}
			}
			for _, answer := range t.stoppers {
				answer(gone("StopTask"))
			}
			t.waiters, t.stoppers = nil, nil
		}
		for name, sc := range n.scripts {
			if sc.hangsOnce {
				sc.hangsAt = ""
				n.scripts[name] = sc
			}
		}
	})
}

func gone(call string) error {
	return &driver.Error{Class: driver.Gone, Call: call, Err: errors.New("the plugin is gone")}
}

// shell is the client's shell for one core. The core may die at the start and at the answer of each
// effect.
type shell struct {
	node  *node
	epoch int
}

var _ client.Shell = (*shell)(nil)

// effect counts a started or answered effect. It returns false if the core is dead.
func (s *shell) effect() bool {
	if s.epoch != s.node.epoch {
		return false
	}
	n := s.node
	if n.dieAt > 0 && n.effects >= n.dieAt {
		return false
	}
	n.effects++
	return true
}

// later calls do after a time, and then answers, unless the core has died.
func (s *shell) later(d time.Duration, do func() (answer func())) {
	if !s.effect() {
		return
	}
	s.node.after(d, 0, func() {
		answer := do()
		if answer != nil && s.effect() {
			answer()
		}
	})
}

// callLimit is the shell's timeout of a call that does not wait for a task.
const callLimit = 30 * time.Second

// hangs reports whether the driver does not answer a call. The call then ends at the shell's limit
// (never if the limit is zero), or when the driver dies.
func (s *shell) hangs(ref client.TaskRef, call string, limit time.Duration, reply func(error)) bool {
	n := s.node
	n.calls[call]++
	at := n.scripts[ref.Task].hangsAt
	if at != call && (at != "every" || call == "StartTask") || !n.driver.runs(ref.Generation) {
		return false
	}
	if s.effect() {
		n.driver.hang(s, call, limit, reply)
	}
	return true
}

func (s *shell) Launch(p client.Plugin, reply func(client.Launched)) {
	n := s.node
	if p.Type == client.DevicePlugin {
		n.devices.process.launch(s, 50*time.Millisecond, reply, func(client.Generation) {
			if !n.devices.mute {
				n.post()
			}
		})
		return
	}
	n.driver.launch(s, 100*time.Millisecond, reply, func(generation client.Generation) {
		n.core.Fingerprint(p.Name, generation, driver.Fingerprint{Health: driver.Healthy, Description: "Healthy"})
	})
}

func (s *shell) Abandon(p client.Plugin, generation client.Generation) {
	if !s.effect() {
		return
	}
	if p.Type == client.DevicePlugin {
		s.node.killDevicePlugin(generation)
		return
	}
	kill := func() {
		if s.node.driver.runs(generation) {
			s.node.killDriver()
		}
	}
	if s.node.dyingTakes == 0 {
		kill()
		return
	}
	s.node.after(s.node.dyingTakes, 0, kill)
}

func (s *shell) Save(r *client.Record, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		if s.node.fullDisk || s.node.brokenDisk {
			s.node.unsaved[r.Alloc.ID] = true
			err := errDisk
			if s.node.fullDisk {
				err = fmt.Errorf("write record: %w", syscall.ENOSPC)
			}
			return func() { reply(err) }
		}
		if s.epoch == s.node.epoch {
			s.node.disk[r.Alloc.ID] = r
			delete(s.node.unsaved, r.Alloc.ID)
		}
		return func() { reply(nil) }
	})
}

func (s *shell) Discard(id cluster.AllocID, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		if s.node.stuck {
			return func() { reply(errDisk) }
		}
		delete(s.node.disk, id)
		delete(s.node.data.folders, id)
		delete(s.node.data.staged, id)
		s.node.discarded = append(s.node.discarded, id)
		if s.node.roomAfter--; s.node.roomAfter == 0 {
			s.node.fullDisk = false
		}
		return func() { reply(nil) }
	})
}

func (s *shell) Build(_ *cluster.Allocation, reply func(error)) {
	s.later(time.Millisecond, func() func() { return func() { reply(nil) } })
}

func (s *shell) Start(ref client.TaskRef, alloc *cluster.Allocation, parts []device.Part, reply func(driver.Handle, error)) {
	n := s.node
	sc := n.scripts[ref.Task]
	if s.hangs(ref, "StartTask", 0, func(err error) { reply(nil, err) }) {
		return
	}
	s.later(max(sc.startTakes, time.Millisecond), func() func() {
		if !n.driver.runs(ref.Generation) {
			return func() { reply(nil, gone("StartTask")) }
		}
		if len(sc.startErrors) > 0 {
			err := sc.startErrors[0]
			sc := n.scripts[ref.Task]
			sc.startErrors = sc.startErrors[1:]
			n.scripts[ref.Task] = sc
			return func() { reply(nil, err) }
		}
		// The write-ahead rule: a record that names the start is on disk before the process exists.
		rec := n.disk[ref.Alloc]
		must.NotNil(n.t, rec)
		must.True(n.t, slices.ContainsFunc(rec.Tasks, func(t client.TaskRecord) bool { return t.ID == ref.ID }), must.Sprint("no record of ", ref.ID))
		must.Len(n.t, 0, n.liveOf(ref.Alloc, ref.Task), must.Sprint("a second copy of ", ref.ID))
		n.storage.starting(alloc, ref)
		n.data.writes(ref.Alloc)
		t := &task{id: ref.ID, alloc: ref.Alloc, name: ref.Task, alive: true, started: n.boot, known: true}
		n.useDevices(t, parts)
		n.tasks[ref.ID] = t
		n.log("%s runs", ref.ID)
		if len(sc.runs) > 0 {
			run := sc.runs[0]
			if len(sc.runs) > 1 {
				sc := n.scripts[ref.Task]
				sc.runs = sc.runs[1:]
				n.scripts[ref.Task] = sc
			}
			if run.after > 0 {
				n.after(run.after, 0, func() { n.exit(t, run.code, 0) })
			}
		}
		return func() { reply(driver.Handle("handle of "+ref.ID), nil) }
	})
}

func (n *node) liveOf(alloc cluster.AllocID, name string) (live []*task) {
	for _, t := range n.live(name) {
		if t.alloc == alloc {
			live = append(live, t)
		}
	}
	return live
}

// call finds the task of a call to the driver, or answers with an error.
func (s *shell) call(ref client.TaskRef, name string, needsKnown bool) (*task, error) {
	n := s.node
	if !n.driver.runs(ref.Generation) {
		return nil, gone(name)
	}
	t := n.tasks[ref.ID]
	if t == nil || needsKnown && !t.known {
		return nil, &driver.Error{Class: driver.NotFound, Call: name, Err: errors.New("task not found for given id")}
	}
	return t, nil
}

func (s *shell) Recover(ref client.TaskRef, _ *cluster.Allocation, handle driver.Handle, reply func(error)) {
	if s.hangs(ref, "RecoverTask", callLimit, reply) {
		return
	}
	s.later(time.Millisecond, func() func() {
		t, err := s.call(ref, "RecoverTask", false)
		if err == nil && s.node.scripts[ref.Task].recoverErr != nil {
			err = s.node.scripts[ref.Task].recoverErr
		}
		if err == nil {
			must.EqOp(s.node.t, "handle of "+string(ref.ID), string(handle))
			t.known = true
		}
		return func() { reply(err) }
	})
}

func (s *shell) Wait(ref client.TaskRef, reply func(driver.ExitResult, error)) {
	if s.hangs(ref, "WaitTask", 0, func(err error) { reply(driver.ExitResult{}, err) }) || !s.effect() {
		return
	}
	s.node.after(time.Millisecond, s.epoch, func() {
		answer := func(r driver.ExitResult, err error) {
			if s.effect() {
				reply(r, err)
			}
		}
		t, err := s.call(ref, "WaitTask", true)
		sc := s.node.scripts[ref.Task]
		switch {
		case err != nil:
			answer(driver.ExitResult{}, err)
		case t.alive && t.signaled != 0 && sc.waitEarly:
			answer(driver.ExitResult{}, nil)
		case !t.alive && sc.waitAgain != nil:
			answer(driver.ExitResult{}, sc.waitAgain)
		case !t.alive && sc.waitUnknown:
			answer(driver.ExitResult{Unknown: true}, nil)
		case !t.alive && t.signaled != 0 && s.node.scripts[ref.Task].waitError != nil:
			answer(driver.ExitResult{Code: -1}, s.node.scripts[ref.Task].waitError)
		case !t.alive:
			answer(*t.exit, nil)
		default:
			t.waiters = append(t.waiters, answer)
		}
	})
}

func (s *shell) Inspect(ref client.TaskRef, reply func(driver.Status, error)) {
	if s.hangs(ref, "InspectTask", callLimit, func(err error) { reply(driver.Status{}, err) }) {
		return
	}
	s.later(time.Millisecond, func() func() {
		t, err := s.call(ref, "InspectTask", true)
		sc := s.node.scripts[ref.Task]
		status := driver.Status{ID: ref.ID, State: driver.TaskRunning}
		if sc.waitsFor != "" {
			status.Attributes = map[string]string{driver.WaitsFor: sc.waitsFor}
		}
		if err == nil && !t.alive && !sc.inspectRuns {
			status.State, status.Exit = driver.TaskExited, t.exit
			if sc.inspectBare {
				status.Exit = nil
			}
		}
		if err == nil {
			err = sc.inspectError
		}
		return func() { reply(status, err) }
	})
}

func (s *shell) Stop(ref client.TaskRef, grace time.Duration, signal string, reply func(error)) {
	if s.hangs(ref, "StopTask", grace+client.StopSlack, reply) {
		return
	}
	s.later(time.Millisecond, func() func() {
		n := s.node
		t, err := s.call(ref, "StopTask", true)
		sc := n.scripts[ref.Task]
		switch {
		case err != nil:
			return func() { reply(err) }
		case sc.stopLies:
			return func() { reply(nil) }
		case sc.stopError != nil && signal != "":
			return func() { reply(sc.stopError) }
		}
		n.storage.stopping(t, "gets its signal")
		sendSignal(n, t, grace, ref.Generation)
		if !sc.stopWaits {
			return func() { reply(nil) }
		}
		answer := func(err error) {
			if s.effect() {
				reply(err)
			}
		}
		t.stoppers = append(t.stoppers, answer)
		if !t.alive {
			answerStops(n, t)
		}
		return nil
	})
}

// sendSignal sends the kill signal, and SIGKILL after the grace unless the driver dies before.
func sendSignal(n *node, t *task, grace time.Duration, generation client.Generation) {
	sc := n.scripts[t.name]
	if t.signaled == 0 {
		t.signaled = n.boot
	}
	n.log("%s gets its signal, grace %s", t.id, grace)
	if sc.waitEarly && t.alive {
		for _, w := range t.waiters {
			w(driver.ExitResult{}, nil)
		}
		t.waiters = nil
	}
	if !sc.ignores {
		n.after(sc.stopTakes, 0, func() { n.exit(t, sc.stopCode, 0) })
	}
	n.after(min(grace, client.Never-n.boot-sc.killsLate)+sc.killsLate, 0, func() {
		if n.driver.runs(generation) {
			n.kill(t)
		}
	})
}

func answerStops(n *node, t *task) {
	stoppers := t.stoppers
	t.stoppers = nil
	for _, answer := range stoppers {
		n.after(n.scripts[t.name].stopLag, 0, func() { answer(nil) })
	}
}

func (s *shell) Kill(ref client.TaskRef, reply func([]client.Process, error)) {
	if s.node.ownCgroup && ref.Generation != 0 && s.hangs(ref, "DestroyTask", callLimit, func(err error) { reply(nil, err) }) {
		return
	}
	s.later(time.Millisecond, func() func() {
		left := s.killAll(ref)
		if t := s.node.tasks[ref.ID]; s.node.ownCgroup && ref.Generation != 0 && t != nil && len(left) == 0 {
			t.known = false // the driver has destroyed it
		}
		return func() { reply(left, nil) }
	})
}

func (s *shell) killAll(ref client.TaskRef) (left []client.Process) {
	for _, t := range s.node.liveOf(ref.Alloc, ref.Task) {
		s.node.kill(t)
		if t.alive {
			left = append(left, client.Process{PID: 4711, Command: "dd", State: "D"})
		}
	}
	return left
}

func (s *shell) AwaitEmpty(ref client.TaskRef, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		for _, t := range s.node.liveOf(ref.Alloc, ref.Task) {
			t.emptied = append(t.emptied, func(err error) {
				if s.effect() {
					reply(err)
				}
			})
			return nil
		}
		return func() { reply(nil) }
	})
}

func (s *shell) Clean(ref client.TaskRef, reply func([]client.Process, error)) {
	if s.hangs(ref, "DestroyTask", callLimit, func(err error) { reply(nil, err) }) {
		return
	}
	s.later(2*time.Millisecond, func() func() {
		n := s.node
		if ref.Generation != 0 && !n.driver.runs(ref.Generation) {
			return func() { reply(nil, gone("DestroyTask")) }
		}
		left := s.killAll(ref)
		if t := n.tasks[ref.ID]; t != nil && len(left) == 0 {
			t.known = false
		}
		if len(left) == 0 {
			n.devices.clean(ref)
		}
		return func() { reply(left, nil) }
	})
}

func (s *shell) Report(reports []cluster.AllocReport, reply func(bool)) {
	for _, r := range reports {
		checkSaved(s.node, r)
	}
	s.later(2*time.Millisecond, func() func() {
		n := s.node
		if n.silent {
			return func() { reply(false) }
		}
		for _, r := range reports {
			if r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed {
				must.Eq(n.t, nil, n.devices.ownedBy(r.Alloc), must.Sprint("reported as ended: ", r.Alloc))
				for _, t := range n.live("") {
					must.NotEqOp(n.t, r.Alloc, t.alloc, must.Sprint("reported as ended, but ", t.id, " lives"))
				}
				n.storage.reported(r)
				if old := n.servers[r.Alloc]; old.ClientStatus != r.ClientStatus {
					n.log("%s is reported as %s", r.Alloc, r.ClientStatus)
				}
			}
			n.reports = append(n.reports, inWords(n.servers[r.Alloc], r))
			n.servers[r.Alloc] = r
		}
		return func() { reply(true) }
	})
}

// checkSaved checks that the record on the disk shows each task running that the report shows
// running. A core that cannot save still reports.
func checkSaved(n *node, r cluster.AllocReport) {
	rec := n.disk[r.Alloc]
	if rec == nil || n.unsaved[r.Alloc] || r.TaskStates == nil {
		return
	}
	for _, t := range r.TaskStates.Tasks {
		i := slices.IndexFunc(rec.Tasks, func(saved client.TaskRecord) bool { return saved.State.Name == t.Name })
		if t.State == cluster.TaskRunning && i >= 0 {
			must.EqOp(n.t, cluster.TaskRunning, rec.Tasks[i].State.State, must.Sprintf("the record of %s of %s", t.Name, r.Alloc))
		}
	}
}

// inWords describes the changes in a report since the last report.
func inWords(before, r cluster.AllocReport) string {
	if r.Healthy != nil && before.Healthy == nil {
		return map[bool]string{true: "healthy", false: "unhealthy"}[*r.Healthy]
	}
	var states []string
	if r.TaskStates != nil {
		for _, t := range r.TaskStates.Tasks {
			states = append(states, string(t.State))
		}
	}
	return string(r.ClientStatus) + ": " + strings.Join(states, ", ")
}

func (s *shell) Publish(facts client.NodeFacts) {
	if s.effect() {
		s.node.published = append(s.node.published, facts)
	}
}
