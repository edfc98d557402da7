package watchdog_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/watchdog"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// role is the environment variable that makes this test binary the double of a client. As a
// watchdog it never reaches TestMain.
const role = "NODEDRAIN_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "client" {
		os.Exit(client(os.Args[1], os.Args[2], os.Args[3:]))
	}
	freshmachine.Enter()
	m.Run()
}

// client starts a watchdog for tasks with these control groups, and waits to be killed. The first
// task has a kill timeout of a minute.
func client(dir, after string, groups []string) int {
	o := watchdog.Options{Program: os.Args[0], Dir: dir, Contact: guard.Contact{Sent: bootclock.Now()}}
	var err error
	if o.Groups, err = cgroup.Find("/"); err != nil {
		fmt.Println(err)
		return 1
	}
	for i, group := range groups {
		g := newGuard("a"+strconv.Itoa(i), group, after)
		if i == 0 {
			g.Tasks[0].KillTimeout = time.Minute
		}
		o.Guards = append(o.Guards, g)
	}
	if _, err := watchdog.Start(context.Background(), o); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, err = os.Stdin.Read(make([]byte, 1))
	fmt.Println(err)
	return 1
}

// newGuard is the guard of an allocation with one task, which gets SIGTERM and 100 ms. A client that lives
// may take any time to stop it.
func newGuard(alloc, group, after string) guard.Guard {
	d, err := time.ParseDuration(after)
	if err != nil {
		panic(err)
	}
	return guard.Guard{Alloc: cluster.AllocID(alloc), After: d, StopTime: guard.Never, Tasks: []guard.Task{
		{Name: "main", Group: group, Phase: cluster.StopMain, Signal: "SIGTERM", KillTimeout: 100 * time.Millisecond},
	}}
}

// machine has tasks in control groups, and a folder for watchdogs.
type machine struct {
	*testing.T
	groups cgroup.Hierarchies
	dir    string
	// id is in the names of control groups. Tests in other pid namespaces have the same pid.
	id string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it creates control groups")
	}
	groups, err := cgroup.Find("/")
	must.NoError(t, err)
	if groups.Kind() == "none" {
		t.Skip("needs control groups")
	}
	m := &machine{t, groups, filepath.Join(t.TempDir(), "watchdog"), rand.Text()}
	t.Cleanup(func() { must.NoError(t, watchdog.End(m.dir)) }) // no watchdog outlives its test
	return m
}

func (m *machine) groupName(task string) string { return "test-" + m.id + "." + task }

// task starts a shell in a control group, and returns when it is ready.
func (m *machine) task(name, script string) (*cgroup.Group, *exec.Cmd) {
	m.Helper()
	g, err := m.groups.Create(m.groupName(name), cgroup.Limits{})
	must.NoError(m, err)
	cmd := exec.Command("/bin/sh", "-c", script)
	out, in, err := os.Pipe()
	must.NoError(m, err)
	defer out.Close()
	cmd.Stdout, cmd.SysProcAttr = in, &syscall.SysProcAttr{}
	must.NoError(m, g.Start(cmd.SysProcAttr, cmd.Start))
	must.NoError(m, in.Close())
	m.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must.NoError(m, g.Kill(ctx))
		must.NoError(m, g.Wait(ctx))
		_ = cmd.Wait()
		must.NoError(m, g.Remove(ctx))
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(m, err)
	must.Eq(m, "ready\n", line)
	return g, cmd
}

// obedient ends with code 7 at SIGTERM. It leaves a process of another session behind.
const obedient = "trap 'exit 7' TERM; setsid sleep 600 & echo ready; while :; do sleep 600 & wait; done"

// stubborn ignores SIGTERM.
const stubborn = "trap '' TERM; echo ready; while :; do sleep 600 & wait; done"

func (m *machine) lives(g *cgroup.Group) bool {
	m.Helper()
	populated, err := g.Populated()
	must.NoError(m, err)
	return populated
}

func (m *machine) start(contact time.Duration, guards ...guard.Guard) *watchdog.Process {
	m.Helper()
	p, err := watchdog.Start(m.Context(), m.options(contact, guards...))
	must.NoError(m, err)
	return p
}

func (m *machine) options(contact time.Duration, guards ...guard.Guard) watchdog.Options {
	return watchdog.Options{Program: os.Args[0], Dir: m.dir, Groups: m.groups, Contact: guard.Contact{Sent: contact}, Guards: guards}
}

func (m *machine) end(p *watchdog.Process) {
	m.Helper()
	select {
	case <-p.Ended():
	case <-m.Context().Done():
		m.Fatal("the watchdog does not end")
	}
}

// The client is killed with its process group, and never comes back. Its tasks get their signal,
// and SIGKILL if they ignore it. The next client gets a note of it.
func TestWatchdog_StopsTheTasksOfADeadClient(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	good, goodTask := m.task("good", obedient)
	bad, badTask := m.task("bad", stubborn)
	other, _ := m.task("other", stubborn)
	starting, err := m.groups.Create(m.groupName("starting"), cgroup.Limits{})
	must.NoError(t, err)
	double := exec.Command(os.Args[0], m.dir, "300ms", good.Name(), bad.Name(), starting.Name(), "no-such-group")
	double.Env, double.SysProcAttr = []string{role + "=client"}, &syscall.SysProcAttr{Setpgid: true}
	out, err := double.StdoutPipe()
	must.NoError(t, err)
	hold, err := double.StdinPipe() // the client waits for it
	must.NoError(t, err)
	defer hold.Close()
	must.NoError(t, double.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(t, err)
	must.Eq(t, "ready\n", line)
	dead := bootclock.Now()
	must.NoError(t, syscall.Kill(-double.Process.Pid, syscall.SIGKILL))
	must.Error(t, double.Wait())

	must.NoError(t, good.Wait(t.Context()))
	must.NoError(t, bad.Wait(t.Context()))
	must.Eq(t, "exit status 7", result(goodTask))
	must.Eq(t, "signal: killed", result(badTask))
	must.True(t, m.lives(other), must.Sprint("no guard names it"))
	m.awaitEnd()
	for _, g := range []*cgroup.Group{good, bad, starting} {
		_, err := os.Stat(g.Path())
		must.ErrorIs(t, err, os.ErrNotExist, must.Sprint("no driver can start a task in it"))
	}
	notes, err := watchdog.Notes(m.dir)
	must.NoError(t, err)
	must.Len(t, 2, notes)
	for i, n := range notes {
		must.Eq(t, cluster.AllocID("a"+strconv.Itoa(i)), n.Alloc)
		must.Eq(t, "stopped by the watchdog: no client has reached a server for 300ms", n.Reason())
		must.Greater(t, dead, n.Signals["main"])
		must.NoError(t, watchdog.Forget(m.dir, n.Alloc))
		must.NoError(t, watchdog.Forget(m.dir, n.Alloc), must.Sprint("it is removed already"))
	}
	notes, err = watchdog.Notes(m.dir)
	must.NoError(t, err)
	must.Len(t, 0, notes)
}

// awaitEnd waits for the end of a watchdog that another process has started.
func (m *machine) awaitEnd() {
	m.Helper()
	content, err := os.ReadFile(filepath.Join(m.dir, "lock"))
	must.NoError(m, err)
	var holder struct{ Process process.Identity }
	must.NoError(m, json.Unmarshal(content, &holder))
	must.NoError(m, process.AwaitEnd(m.Context(), holder.Process))
}

// result waits for the end of a task.
func result(cmd *exec.Cmd) string {
	_ = cmd.Wait() // its error is the state
	return cmd.ProcessState.String()
}

// All allocations are overdue unless the heartbeat counts. Its time is a little later than the present
// time, and the notes of the watchdog show that it has waited for it. Bug: the test needed a machine
// that had started an hour ago.
func TestWatchdog_ARenewedDeadline(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first, _ := m.task("first", obedient)
	added, _ := m.task("added", obedient)
	removed, _ := m.task("removed", obedient)
	p := m.start(1, newGuard("a", first.Name(), "1ns"), newGuard("c", removed.Name(), "1ns"))
	heartbeat := bootclock.Now() + 200*time.Millisecond
	must.NoError(t, p.Contact(guard.Contact{Sent: heartbeat}))
	must.NoError(t, p.Put(newGuard("b", added.Name(), "1ns")))
	must.NoError(t, p.Remove("c"))
	must.NoError(t, p.Release())
	must.NoError(t, first.Wait(t.Context()))
	must.NoError(t, added.Wait(t.Context()))
	m.end(p)
	must.True(t, m.lives(removed))
	notes, err := watchdog.Notes(m.dir)
	must.NoError(t, err)
	must.Len(t, 2, notes)
	for _, n := range notes {
		must.Greater(t, heartbeat, n.Signals["main"])
	}
}

// A client lives and does nothing. The watchdog kills what has processes, writes a note, and removes the
// control groups. After an answered heartbeat it does not kill what the client starts.
func TestWatchdog_KillsTheTasksOfAFrozenClient(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	bad, badTask := m.task("bad", stubborn)
	g := newGuard("a", bad.Name(), "1ns")
	g.StopTime = 0
	contact := max(1, bootclock.Now()-cluster.KillMarginOfNode+300*time.Millisecond) // the boot may be recent
	p := m.start(contact, g)
	must.NoError(t, bad.Wait(t.Context()))
	must.Eq(t, "signal: killed", result(badTask))
	note, err := watchdog.Note(m.dir, "a")
	must.NoError(t, err)
	must.NotNil(t, note)
	must.GreaterEq(t, contact+cluster.KillMarginOfNode, note.Signals["main"])
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for { // no driver can finish a start of the frozen client
		if _, err := os.Stat(bad.Path()); errors.Is(err, os.ErrNotExist) {
			break
		}
		<-tick.C
	}
	must.NoError(t, p.Contact(guard.Contact{Sent: bootclock.Now() + time.Hour}))
	again, _ := m.task("bad", stubborn)
	must.NoError(t, p.Contact(guard.Contact{Sent: bootclock.Now() + 2*time.Hour}))
	must.True(t, m.lives(again))
	must.NoError(t, p.Stop())
	none, err := watchdog.Note(m.dir, "b")
	must.NoError(t, err)
	must.Nil(t, none)
}

// The next client takes over: the first watchdog ends before Start returns, although it would have
// killed the task. Bug: the test needed a machine that had started two hours ago.
func TestWatchdog_TheNextClientTakesOver(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	task, _ := m.task("task", obedient)
	now := bootclock.Now()
	first := m.start(now, newGuard("a", task.Name(), "1h"))
	must.NoError(t, first.Release())
	second := m.start(1, newGuard("a", task.Name(), "1ns")) // overdue, and its client lives
	m.end(first)
	must.NoError(t, second.Contact(guard.Contact{Sent: now}))
	must.True(t, m.lives(task))

	// A start that was overtaken, and a client that dies while it starts a watchdog, change
	// nothing.
	for text, in := range map[string]string{`{"Begin":true}`: "error take the lock of the watchdog: a later watchdog runs", `{"Contact":1}`: "error the client has not sent all guards: EOF"} {
		late := exec.Command(os.Args[0], watchdog.Argument, "-protocol", "1", "-dir", m.dir, "-number", "1")
		late.Stdin = strings.NewReader(text)
		output, err := late.Output()
		must.Error(t, err)
		must.Eq(t, in+"\n", string(output))
	}
	must.NoError(t, watchdog.End(m.dir))
	m.end(second)
	must.NoError(t, watchdog.End(m.dir), must.Sprint("none runs"))
	must.True(t, m.lives(task))
	must.Error(t, second.Contact(guard.Contact{Sent: now}), must.Sprint("the client gets an error"))
}

// A client whose boot clock went back takes over at once. Bug: the start failed with "a later watchdog runs"
// until the clock had passed the time of the first start, and the first watchdog stopped the task.
func TestWatchdog_TheClockWentBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	task, _ := m.task("task", obedient)
	first := m.start(bootclock.Now(), newGuard("a", task.Name(), "1h"))
	path := filepath.Join(m.dir, "lock")
	content, err := os.ReadFile(path)
	must.NoError(t, err)
	var holder struct {
		Process process.Identity
		Number  int64
	}
	must.NoError(t, json.Unmarshal(content, &holder))
	holder.Number += int64(time.Hour)
	content, err = json.Marshal(holder)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(path, content, 0o600))
	second := m.start(bootclock.Now(), newGuard("a", task.Name(), "1h"))
	m.end(first)
	third := m.start(bootclock.Now(), newGuard("a", task.Name(), "1h"))
	m.end(second)
	must.True(t, m.lives(task))
	must.NoError(t, third.Stop())
}

// A watchdog without allocations ends with its client, and one that is killed ends the channel of
// its client.
func TestWatchdog_Ends(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start(bootclock.Now(), newGuard("a", "no-such-group", "1h"))
	must.NoError(t, p.Remove("a"))
	must.NoError(t, p.Release())
	m.end(p)
	p = m.start(bootclock.Now(), newGuard("a", "no-such-group", "1h"))
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		must.NoError(t, syscall.Kill(p.ID.PID, signal))
	}
	must.NoError(t, p.Contact(guard.Contact{Sent: bootclock.Now()}), must.Sprint("it ignores the signals"))
	must.NoError(t, p.Stop())
	m.end(p)
}

func TestStart_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*watchdog.Options)
		expected string
	}{
		"no program":             {func(o *watchdog.Options) { o.Program = "/missing" }, "no such file"},
		"a program that ends":    {func(o *watchdog.Options) { o.Program = "/bin/true" }, "did not report that it is ready"},
		"another program":        {func(o *watchdog.Options) { o.Program = "/bin/echo" }, "did not report that it is ready"},
		"a file for the folder":  {func(o *watchdog.Options) { o.Dir = "/dev/null" }, "not a directory"},
		"no control groups":      {func(o *watchdog.Options) { o.Groups = cgroup.Hierarchies{} }, cgroup.ErrNone.Error()},
		"a guard without a time": {func(o *watchdog.Options) { o.Guards[0].After = 0 }, "no positive time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			o := m.options(bootclock.Now(), newGuard("a", "no-such-group", "1h"))
			c.change(&o)
			_, err := watchdog.Start(t.Context(), o)
			must.ErrorContains(t, err, c.expected)
		})
	}
}

// A program that never becomes ready is killed at the end of the context.
func TestStart_NeverReady(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	o := m.options(bootclock.Now())
	o.Program = filepath.Join(t.TempDir(), "program")
	must.NoError(t, os.WriteFile(o.Program, []byte("#!/bin/sh\nexec sleep 3600\n"), 0o700))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the client is stopping"))
	defer cancel()
	_, err := watchdog.Start(ctx, o)
	must.ErrorContains(t, err, "the client is stopping")
}
