package rawexec_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// A task sees its own folder and environment. The suite of drivers tests the rest of its life.
func TestTask_life(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; pwd; env | grep -v ^PWD= | sort; echo oops >&2; read x; exit 3")
	c.Env["B"] = "b c"
	c.DeviceEnv = map[string]string{"GPU": "0", "B": "of the device"}
	handle := n.start(p, c)
	must.Eq(t, int32(1), handle.GetVersion())
	exit := n.wait(p, c)
	must.Eq(t, int32(3), exit.GetResult().GetExitCode())
	must.Eq(t, int32(0), exit.GetResult().GetSignal())
	must.Eq(t, "ready\n"+filepath.Join(c.GetAllocDir(), c.GetName())+"\nB=b c\nGPU=0\nMARK="+n.mark()+"\n", n.stdout(c))
	stderr, err := os.ReadFile(c.GetStderrPath())
	must.NoError(t, err)
	must.Eq(t, "oops\n", string(stderr))

	n.end(p, c)
}

// leaver is a script that starts a process outside of all control groups. The process ignores SIGTERM.
const leaver = `setsid sh -c 'for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do echo $$ >$f; done 2>/dev/null
trap "" TERM; echo ready; while :; do sleep 600 & wait; done' & `

// obeys is the grace of tasks that obey. If one does not, its kill shows in the exit code.
const obeys = 30 * time.Second

func TestStop(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script, signal string
		grace          time.Duration
		code, sig      int32
		atLeast        time.Duration
	}{
		"the signal is obeyed":       {"trap 'exit 7' TERM; echo ready; while :; do sleep 600 & wait; done", "SIGTERM", obeys, 7, 0, 0},
		"the default is SIGINT":      {"trap 'exit 8' INT; echo ready; while :; do sleep 600 & wait; done", "", obeys, 8, 0, 0},
		"a short name":               {"trap 'exit 9' HUP; echo ready; while :; do sleep 600 & wait; done", "hup", obeys, 9, 0, 0},
		"the signal kills":           {"echo ready; exec sleep 600", "SIGTERM", obeys, 143, 15, 0},
		"the signal is ignored":      {"trap '' TERM; echo ready; while :; do sleep 600 & wait; done", "SIGTERM", time.Second, 137, 9, time.Second},
		"stopped processes obey":     {"trap 'exit 5' TERM; echo ready; kill -STOP $$; sleep 600", "SIGTERM", obeys, 5, 0, 0},
		"no grace":                   {"trap '' TERM; echo ready; while :; do sleep 600 & wait; done", "SIGTERM", 0, 137, 9, 0},
		"what forked away goes too":  {"trap 'exit 6' TERM; setsid sh -c 'trap \"\" TERM; sleep 600 & sleep 600' & echo ready; while :; do sleep 600 & wait; done", "SIGTERM", obeys, 6, 0, 0},
		"what forked away, by force": {"trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 600 & sleep 600' & echo ready; while :; do sleep 600 & wait; done", "SIGTERM", 300 * time.Millisecond, 137, 9, 300 * time.Millisecond},
		// Bug: the shim waited for ever for a child that had left all control groups, and nothing killed it.
		"what left the control group goes too":  {"trap 'exit 6' TERM; " + leaver + "while :; do sleep 600 & wait; done", "SIGTERM", obeys, 6, 0, 0},
		"what left the control group, by force": {"trap '' TERM; " + leaver + "while :; do sleep 600 & wait; done", "SIGTERM", 300 * time.Millisecond, 137, 9, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, p := launched(t)
			c := n.task(tt.script)
			n.start(p, c)
			waited := make(chan int32, 1)
			go func() {
				r, _ := p.WaitTask(context.Background(), &pb.WaitTaskRequest{TaskId: c.GetId()})
				waited <- r.GetResult().GetExitCode()
			}()
			begin := time.Now()
			must.NoError(t, n.stop(p, c, tt.grace, tt.signal))
			took := time.Since(begin) // it contains the grace, also on a busy machine
			must.Eq(t, nil, n.processes(), must.Sprint("no process lives after a stop"))
			must.GreaterEq(t, tt.atLeast, took)
			if tt.grace == obeys {
				must.Less(t, obeys, took, must.Sprint("what is left dies with the task, not at the end of the grace"))
			}
			must.Eq(t, tt.code, <-waited)
			r := n.wait(p, c)
			must.Eq(t, tt.code, r.GetResult().GetExitCode())
			must.Eq(t, tt.sig, r.GetResult().GetSignal())
			must.NoError(t, n.stop(p, c, tt.grace, tt.signal))
			n.end(p, c)
		})
	}
}

// No later stop extends the grace of the first one, for any signal and any grace. A shorter grace
// counts. The driver that receives the later stops may be a new one. A task that is not killed ends with another
// exit code after its 1,500 sleeps.
func TestStop_again(t *testing.T) {
	t.Parallel()
	type stop struct {
		signal string
		grace  time.Duration
	}
	for name, tt := range map[string]struct {
		stops   []stop
		restart bool // of the driver, before the last stop
	}{
		"the same signal":        {[]stop{{"TERM", 2 * time.Second}, {"TERM", time.Hour}}, false},
		"another signal":         {[]stop{{"TERM", 2 * time.Second}, {"INT", time.Hour}}, false},
		"the first signal again": {[]stop{{"TERM", 2 * time.Second}, {"INT", time.Hour}, {"TERM", time.Hour}, {"HUP", 2 * time.Hour}}, false},
		"a shorter grace":        {[]stop{{"TERM", time.Hour}, {"INT", 2 * time.Second}, {"HUP", 2 * time.Hour}}, false},
		"another driver":         {[]stop{{"TERM", 2 * time.Second}, {"INT", time.Hour}}, true},
		"another driver, again":  {[]stop{{"TERM", 2 * time.Second}, {"TERM", time.Hour}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, p := launched(t)
			c := n.task("for s in TERM INT HUP; do trap \"echo $s\" $s; done; echo ready; i=0; while [ $i -lt 1500 ]; do sleep 0.02; i=$((i+1)); done; exit 3")
			handle := n.start(p, c)
			begin, last := time.Now(), len(tt.stops)-1
			output := "ready\n"
			for _, s := range tt.stops[:last] {
				go p.StopTask(context.Background(), &pb.StopTaskRequest{TaskId: c.GetId(), Timeout: durationpb.New(s.grace), Signal: s.signal})
				output += s.signal + "\n"
				n.until(func() bool { return n.stdout(c) == output || len(n.processes()) == 0 })
			}
			if tt.restart {
				p = n.relaunch(p)
				must.NoError(t, n.recover(p, handle))
			}
			must.NoError(t, n.stop(p, c, tt.stops[last].grace, tt.stops[last].signal))
			must.GreaterEq(t, 2*time.Second, time.Since(begin))
			must.Eq(t, int32(137), n.wait(p, c).GetResult().GetExitCode())
			n.end(p, c)
		})
	}
}

// Without cgroup v2 the freezer of v1 kills, and without both the tree of processes below the shim.
func TestStop_olderMachines(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"v1", "none"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.only(kind)
			p := n.launch()
			const script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; (while :; do sleep 600 & wait; done) & sleep 600' & echo ready; while :; do sleep 600 & wait; done"
			c := n.task(script)
			n.start(p, c)
			begin := time.Now()
			must.NoError(t, n.stop(p, c, 500*time.Millisecond, "SIGTERM"))
			must.GreaterEq(t, 500*time.Millisecond, time.Since(begin))
			must.Eq(t, nil, n.processes())
			must.Eq(t, int32(137), n.wait(p, c).GetResult().GetExitCode())
			n.destroy(p, c)

			// A process in a session of its own survives the death of the shim only without a
			// group.
			if kind == "none" {
				c = n.task("sh -c 'sleep 600 & sleep 600' & echo ready; sleep 600")
			} else {
				c = n.task(script)
			}
			n.start(p, c)
			must.NoError(t, syscall.Kill(n.pid(p, c, "shim_pid"), syscall.SIGKILL))
			must.StrContains(t, n.wait(p, c).GetErr(), "lost")
			must.Eq(t, nil, n.processes())
			n.end(p, c)
		})
	}
}

// H12: the name of a signal that does not exist neither stops nor kills.
func TestSignal(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("trap 'echo user' USR1; echo ready; while :; do sleep 600 & wait; done")
	n.start(p, c)
	must.ErrorContains(t, n.stop(p, c, 0, "SIGNONE"), `unknown signal "SIGNONE"`)
	_, err := p.SignalTask(t.Context(), &pb.SignalTaskRequest{TaskId: c.GetId(), Signal: "SIGNONE"})
	must.ErrorContains(t, err, "unknown signal")
	_, err = p.SignalTask(t.Context(), &pb.SignalTaskRequest{TaskId: c.GetId()})
	must.Error(t, err)
	_, err = p.SignalTask(t.Context(), &pb.SignalTaskRequest{TaskId: c.GetId(), Signal: "SIGUSR1"})
	must.NoError(t, err)
	n.until(func() bool { return n.stdout(c) == "ready\nuser\n" })
	_, err = p.DestroyTask(t.Context(), &pb.DestroyTaskRequest{TaskId: c.GetId()})
	must.ErrorContains(t, err, "the task runs")
	st, err := n.inspect(p, c)
	must.NoError(t, err)
	must.Eq(t, pb.TaskState_RUNNING, st.GetTask().GetState())
	n.end(p, c)
}

// The shim dies: all processes of its task are killed, and the driver reports that the result is
// lost.
func TestShimDies(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("trap '' TERM; setsid sh -c 'sleep 600 & sleep 600' & echo ready; while :; do sleep 600 & wait; done")
	n.start(p, c)
	must.NoError(t, syscall.Kill(n.pid(p, c, "shim_pid"), syscall.SIGKILL))
	r := n.wait(p, c)
	must.StrContains(t, r.GetErr(), "lost")
	must.Nil(t, r.GetResult())
	must.Eq(t, nil, n.processes())
	st, err := n.inspect(p, c)
	must.NoError(t, err)
	must.Eq(t, pb.TaskState_EXITED, st.GetTask().GetState())
	must.Nil(t, st.GetTask().GetResult())
	n.end(p, c)
}

// A shim and the plugin die. The next process of the plugin kills the rest of the processes.
func TestShimAndPluginDie(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("setsid sh -c 'sleep 600 & sleep 600' & echo ready; sleep 600")
	handle := n.start(p, c)
	shim := n.pid(p, c, "shim_pid")
	p.kill(t)
	must.NoError(t, syscall.Kill(shim, syscall.SIGKILL))
	p = n.launch()
	must.NoError(t, n.recover(p, handle))
	must.StrContains(t, n.wait(p, c).GetErr(), "lost")
	must.Eq(t, nil, n.processes())
	n.end(p, c)
}

// The folder of a shim is deleted while no plugin lives, also on a machine without control groups. Bug: the processes of
// the lost task were not killed, and ran beside those of its next start.
func TestRecover_deletedFolder(t *testing.T) {
	t.Parallel()
	for _, groups := range []bool{true, false} {
		t.Run(fmt.Sprint("control groups: ", groups), func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			if !groups {
				n.only("none")
			}
			p := n.launch()
			handle := n.start(p, n.task("trap '' TERM; sleep 600 & echo ready; while :; do sleep 600 & wait; done"))
			p.kill(t)
			must.NoError(t, os.RemoveAll(n.shims()))
			must.ErrorContains(t, n.recover(n.launch(), handle), "no shim has a record")
			must.Eq(t, nil, n.processes())
		})
	}
}

// A client has lost all records. It finds the starts of a task by their shims and ends them, also on a
// machine without control groups and if the shim does not answer.
func TestStarts_endWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"the shim stops its task": false, "the shim hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.only("none")
			p := n.launch()
			c, other := n.task("trap 'echo bye; exit 0' INT; echo ready; while :; do sleep 600 & wait; done"), n.task("echo ready; exec sleep 600")
			n.start(p, c)
			n.start(p, other)
			if hangs {
				frozen.Stop(t, n.pid(p, c, "shim_pid"))
			}
			p.kill(t)
			starts, err := shim.Starts(n.shims(), c.GetAllocId(), c.GetName())
			must.NoError(t, err)
			must.SliceLen(t, 1, starts)
			must.NoError(t, starts[0].End(t.Context(), syscall.SIGINT, time.Minute))
			must.SliceLen(t, 1, n.processes(), must.Sprint("the other task runs"))
			must.EqOp(t, hangs, n.stdout(c) == "ready\n")
			must.DirNotExists(t, string(starts[0]))
			starts, err = shim.Starts(n.shims(), c.GetAllocId(), c.GetName())
			must.NoError(t, err)
			must.SliceEmpty(t, starts)
			n.end(n.launch(), other)
		})
	}
}

// NP-P5: a shim that does not answer delays the stop of its own task only by the request.
func TestShimHangs(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c, other := n.task("trap '' TERM; echo ready; while :; do sleep 600 & wait; done"), n.task("echo ready; exec sleep 600")
	n.start(p, c)
	n.start(p, other)
	frozen.Stop(t, n.pid(p, c, "shim_pid"))
	stopped := make(chan error, 1)
	go func() { stopped <- n.stop(p, c, 500*time.Millisecond, "SIGTERM") }()
	must.NoError(t, n.stop(p, other, time.Minute, "SIGTERM"))
	must.NoError(t, <-stopped)
	must.StrContains(t, n.wait(p, c).GetErr(), "lost")
	must.Eq(t, nil, n.processes())
	n.destroy(p, c)
	n.end(p, other)
}

// H8, D8: the plugin dies and its task keeps running. The next process has the true result.
func TestPluginDies(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; while ! test -e go; do sleep 0.02; done; exit 42")
	handle := n.start(p, c)
	pid := n.pid(p, c, "pid")
	p = n.relaunch(p)
	for range 2 { // known after the first time
		must.NoError(t, n.recover(p, handle))
	}
	must.Eq(t, pid, n.pid(p, c, "pid"))
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	must.Eq(t, int32(42), n.wait(p, c).GetResult().GetExitCode())

	// D9: it has ended while no plugin lived. It is known by its id and by its handle.
	p = n.relaunch(p)
	must.Eq(t, int32(42), n.wait(p, c).GetResult().GetExitCode())
	p = n.relaunch(p)
	must.NoError(t, n.recover(p, handle))
	must.Eq(t, int32(42), n.wait(p, c).GetResult().GetExitCode())
	n.end(p, c)

	must.ErrorContains(t, n.recover(p, handle), "no shim has a record")
	handle.Version++
	must.ErrorContains(t, n.recover(p, handle), "version 2")
	handle.Version, handle.DriverState = 1, []byte("{")
	must.ErrorContains(t, n.recover(p, handle), "decode the handle")
}

// H11: the plugin dies in a stop. The shim keeps the grace and kills at its end.
func TestPluginDiesInAStop(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("trap 'echo int' INT; trap 'echo term' TERM; echo ready; while :; do sleep 600 & wait; done")
	handle := n.start(p, c)
	// The grace of an earlier stop is longer. Only the shim is left to kill the task after the shorter one.
	go p.StopTask(context.Background(), &pb.StopTaskRequest{TaskId: c.GetId(), Timeout: durationpb.New(time.Hour), Signal: "SIGINT"})
	n.until(func() bool { return n.stdout(c) == "ready\nint\n" })
	begin := time.Now()
	go p.StopTask(context.Background(), &pb.StopTaskRequest{TaskId: c.GetId(), Timeout: durationpb.New(2 * time.Second), Signal: "SIGTERM"})
	n.until(func() bool { return n.stdout(c) == "ready\nint\nterm\n" })
	p.kill(t)
	n.until(func() bool { return len(n.processes()) == 0 })
	must.GreaterEq(t, 2*time.Second, time.Since(begin))
	p = n.launch()
	must.NoError(t, n.recover(p, handle))
	r := n.wait(p, c)
	must.Eq(t, int32(137), r.GetResult().GetExitCode())
	must.Eq(t, "ready\nint\nterm\n", n.stdout(c), must.Sprint("each signal was sent once"))
	n.end(p, c)
}

// H4: the plugin dies in a start, at many moments. The next process has the task by its id or states
// that there is none; a destroy leaves nothing.
func TestPluginDiesInAStart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var known int
	for i := range 12 {
		p := n.launch()
		c := n.task("sleep 600")
		go p.StartTask(context.Background(), &pb.StartTaskRequest{Task: c})
		<-time.After(time.Duration(i) * 4 * time.Millisecond) // the moment is what varies
		p = n.relaunch(p)
		_, err := n.inspect(p, c)
		if err == nil {
			known++
			n.destroy(p, c)
		} else {
			notFound(t, err)
		}
		must.Eq(t, nil, n.processes())
		p.client.Kill()
	}
	t.Logf("%d of 12 starts had begun", known)
	n.empty()
}

// The host gives up in a start, at many moments. A destroy leaves nothing.
func TestStart_deadline(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	for i := range 15 {
		c := n.task("sleep 600")
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*3*time.Millisecond)
		_, _ = p.StartTask(ctx, &pb.StartTaskRequest{Task: c})
		cancel()
		if _, err := p.DestroyTask(t.Context(), &pb.DestroyTaskRequest{TaskId: c.GetId(), Force: true}); err != nil {
			notFound(t, err)
		}
	}
	n.until(func() bool { // the call of a host that gave up ends by itself
		folders, err := os.ReadDir(n.shims())
		return err == nil && len(folders) == 0
	})
	n.empty()
}

// The record is damaged or written by a newer shim. Its task keeps running, and its shim repairs
// the record.
func TestRecord_damagedOrNewer(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; while ! test -e go; do sleep 0.02; done; exit 17")
	handle := n.start(p, c)
	pid := n.pid(p, c, "pid")
	p.kill(t)
	folders, err := os.ReadDir(n.shims())
	must.NoError(t, err)
	record := filepath.Join(n.shims(), folders[0].Name(), "record")
	good, err := os.ReadFile(record)
	must.NoError(t, err)

	must.NoError(t, os.WriteFile(record, []byte(strings.Replace(string(good), `"protocol":1`, `"protocol":9`, 1)), 0o600))
	p = n.launch()
	must.ErrorContains(t, n.recover(p, handle), "protocol 9")

	must.NoError(t, os.WriteFile(record, good[:100], 0o600))
	must.NoError(t, n.recover(p, handle))
	st, err := n.inspect(p, c)
	must.NoError(t, err)
	must.Eq(t, pb.TaskState_RUNNING, st.GetTask().GetState())
	must.StrContains(t, st.GetDriver().GetAttributes()["record"], "decode the record")
	must.SliceContains(t, n.processes(), pid)
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	must.Eq(t, int32(17), n.wait(p, c).GetResult().GetExitCode())
	n.end(p, c)
}

// The file system of the records is full when the task ends: the result is kept.
func TestRecord_fullDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	must.NoError(t, os.Mkdir(n.shims(), 0o700))
	must.NoError(t, syscall.Mount("none", n.shims(), "tmpfs", 0, "size=256k,mode=0700"))
	t.Cleanup(func() { must.NoError(t, syscall.Unmount(n.shims(), syscall.MNT_DETACH)) })
	p := n.launch()
	c := n.task("echo ready; while ! test -e go; do sleep 0.02; done; exit 18")
	n.start(p, c)
	must.ErrorIs(t, os.WriteFile(filepath.Join(n.shims(), "full"), make([]byte, 1<<20), 0o600), syscall.ENOSPC)
	second := n.task("true")
	_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: second})
	must.ErrorContains(t, err, "no space left")
	_, err = n.inspect(p, second)
	notFound(t, err)
	p.kill(t)
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	n.until(func() bool { return len(n.processes()) == 0 })
	p = n.launch()
	must.Eq(t, int32(18), n.wait(p, c).GetResult().GetExitCode())
	n.destroy(p, c)
	must.NoError(t, os.Remove(filepath.Join(n.shims(), "full")))
	n.empty()
}

// ice is a folder of the freezer of v1. It simulates state D.
type ice struct {
	*node
	dir string
}

// newIce skips the test on a machine without the freezer.
func newIce(n *node) ice {
	n.Helper()
	const freezer = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(freezer + "/cgroup.procs"); err != nil {
		n.Skip("needs the freezer of cgroup v1")
	}
	i := ice{n, filepath.Join(freezer, "test-ice-"+rand.Text())}
	must.NoError(n, os.Mkdir(i.dir, 0o755))
	n.Cleanup(func() {
		i.thaw()
		n.until(func() bool { return os.Remove(i.dir) == nil })
	})
	return i
}

// freeze freezes the second process of a task that has two.
func (i ice) freeze(p *pluginProcess, c *pb.TaskConfig) {
	i.Helper()
	for _, pid := range i.living(2) {
		if pid != i.pid(p, c, "pid") {
			must.NoError(i, os.WriteFile(i.dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0))
		}
	}
	must.NoError(i, os.WriteFile(i.dir+"/freezer.state", []byte("FROZEN"), 0))
	i.until(func() bool { // the kernel freezes a process only when it next runs
		state, err := os.ReadFile(i.dir + "/freezer.state")
		must.NoError(i, err)
		return strings.TrimSpace(string(state)) == "FROZEN"
	})
}

func (i ice) thaw() {
	i.Helper()
	must.NoError(i, os.WriteFile(i.dir+"/freezer.state", []byte("THAWED"), 0))
}

// A process in state D keeps its task running, and Inspect names it.
func TestProcessThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	ice := newIce(n)
	p := n.launch()
	c := n.task("setsid sleep 600 & echo ready; wait")
	n.start(p, c)
	ice.freeze(p, c)
	stopped := make(chan error, 1)
	go func() { stopped <- n.stop(p, c, time.Second, "SIGTERM") }()
	var waits string
	n.until(func() bool {
		st, err := n.inspect(p, c)
		must.NoError(t, err)
		must.Eq(t, pb.TaskState_RUNNING, st.GetTask().GetState())
		waits = st.GetDriver().GetAttributes()["waits_for"]
		return strings.Contains(waits, "state D")
	})
	must.StrContains(t, waits, "sleep 600")
	brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.WaitTask(brief, &pb.WaitTaskRequest{TaskId: c.GetId()})
	must.Eq(t, codes.DeadlineExceeded, status.Code(err))
	ice.thaw()
	must.NoError(t, <-stopped)
	must.Eq(t, int32(143), n.wait(p, c).GetResult().GetExitCode())
	n.end(p, c)
}

// The first process of a task ends by itself, and an orphan of it is in state D. An event names it, also
// the first event of a later driver. Bug: no event did, and the task seemed to run.
func TestOrphanThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	ice := newIce(n)
	p := n.launch()
	c := n.task("setsid sleep 600 & echo ready; read line < go; exit 3")
	fifo := filepath.Join(c.GetAllocDir(), c.GetName(), "go")
	must.NoError(t, syscall.Mkfifo(fifo, 0o644))
	handle := n.start(p, c)
	ice.freeze(p, c)
	must.NoError(t, os.WriteFile(fifo, []byte("now\n"), 0))
	named := func() {
		t.Helper()
		stream, err := p.TaskEvents(t.Context(), &pb.TaskEventsRequest{})
		must.NoError(t, err)
		e, err := stream.Recv()
		must.NoError(t, err)
		must.Eq(t, c.GetId(), e.GetTaskId())
		must.StrContains(t, e.GetMessage(), "the first process has ended with exit code 3, and processes remain after the kill: [pid ")
		must.StrContains(t, e.GetAnnotations()["waits_for"], "sleep 600")
		must.StrContains(t, e.GetMessage(), e.GetAnnotations()["waits_for"])
	}
	named()
	p = n.relaunch(p)
	must.NoError(t, n.recover(p, handle))
	named()
	ice.thaw()
	must.Eq(t, int32(3), n.wait(p, c).GetResult().GetExitCode())
	n.end(p, c)
}

// R8: the plugin dies while the task prints. No line is lost, and the files are bounded.
func TestLogs_acrossRestarts(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("i=0; while test $i -lt 300; do echo line $i; i=$((i+1)); sleep 0.01; done")
	logs := filepath.Join(n.dir, "logs")
	must.NoError(t, os.Mkdir(logs, 0o755))
	c.StdoutPath = "rotate:" + logs + "/web.stdout?max_files=20&max_file_size=400"
	r, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
	must.NoError(t, err)
	for i := range 3 {
		n.until(func() bool { // the task prints meanwhile
			files, err := os.ReadDir(logs)
			must.NoError(t, err)
			return len(files) > i
		})
		p = n.relaunch(p)
		_, err := p.RecoverTask(t.Context(), &pb.RecoverTaskRequest{Handle: r.GetHandle()})
		must.NoError(t, err)
	}
	must.Eq(t, int32(0), n.wait(p, c).GetResult().GetExitCode())
	var expected, got strings.Builder
	for i := range 300 {
		fmt.Fprintf(&expected, "line %d\n", i)
	}
	files, err := os.ReadDir(logs)
	must.NoError(t, err)
	must.Greater(t, 5, len(files))
	for i := range files {
		b, err := os.ReadFile(filepath.Join(logs, "web.stdout."+strconv.Itoa(i)))
		must.NoError(t, err)
		must.LessEq(t, 400, len(b))
		got.Write(b)
	}
	must.Eq(t, expected.String(), got.String())
	n.end(p, c)
}

// A FIFO without a reader delays no start, and the end of a reader kills no task.
func TestLogs_fifo(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo one; while ! test -e go; do sleep 0.02; done; echo two; exit 4")
	c.StdoutPath = filepath.Join(n.dir, ".web.stdout.fifo")
	must.NoError(t, syscall.Mkfifo(c.GetStdoutPath(), 0o600))
	_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
	must.NoError(t, err)
	reader, err := os.Open(c.GetStdoutPath())
	must.NoError(t, err)
	line := make([]byte, 4)
	_, err = reader.Read(line)
	must.NoError(t, err)
	must.Eq(t, "one\n", string(line))
	must.NoError(t, reader.Close())
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	must.Eq(t, int32(4), n.wait(p, c).GetResult().GetExitCode())
	n.end(p, c)
}

func TestStart_refused(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	config := func(c map[string]any) func(*pb.TaskConfig) {
		return func(task *pb.TaskConfig) { task.MsgpackDriverConfig = n.config(c) }
	}
	for expected, change := range map[string]func(*pb.TaskConfig){
		"the config has no command": config(map[string]any{"args": nil}),
		"image":                     config(map[string]any{"command": "/bin/true", "image": "x"}),
		"no program":                config(map[string]any{"command": "does-not-exist"}),
		"no program \"../x\"":       config(map[string]any{"command": "../x"}),
		"zero byte":                 config(map[string]any{"command": "/bin/true", "args": []string{"\x00"}}),
		"user \"none-such\"":        func(c *pb.TaskConfig) { c.User = "none-such" },
		"no mounts":                 func(c *pb.TaskConfig) { c.Mounts = []*pb.Mount{{TaskPath: "/a"}} },
		"network of the host": func(c *pb.TaskConfig) {
			c.NetworkIsolationSpec = &pb.NetworkIsolationSpec{Mode: pb.NetworkIsolationSpec_GROUP}
		},
		"folder of the task": func(c *pb.TaskConfig) { c.Name = "other" },
		"is not the folder":  func(c *pb.TaskConfig) { c.Name = "../x" },
		"log path":           func(c *pb.TaskConfig) { c.StdoutPath = "rotate:/x?max_file=1" },
		"open stderr":        func(c *pb.TaskConfig) { c.StderrPath = "/does/not/exist" },
		"exec format error": func(c *pb.TaskConfig) {
			bad := filepath.Join(c.GetAllocDir(), c.GetName(), "bad")
			must.NoError(t, os.WriteFile(bad, []byte("\x7fELF"), 0o755))
			config(map[string]any{"command": "bad"})(c)
		},
	} {
		c := n.task("true")
		change(c)
		_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
		must.ErrorContains(t, err, expected)
		_, err = n.inspect(p, c)
		notFound(t, err)
	}
	n.emptyIfAny()
}

// The control group of the host is used if it is the task's own, and one with processes is refused.
func TestCgroup(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	h, err := cgroup.Find("/")
	must.NoError(t, err)
	c := n.task("echo ready; exec sleep 600")
	g, err := h.Create(c.GetAllocId()+".of-the-host", cgroup.Limits{})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, g.Remove(context.Background())) })
	c.Resources = &pb.Resources{LinuxResources: &pb.LinuxResources{CpusetCgroup: g.Path()}}
	n.start(p, c)
	pids, err := g.PIDs()
	must.NoError(t, err)
	must.Eq(t, n.living(1), pids)

	second := n.task("true")
	second.Resources = c.GetResources()
	_, err = p.StartTask(t.Context(), &pb.StartTaskRequest{Task: second})
	must.ErrorContains(t, err, "has processes of another start")
	must.ErrorContains(t, err, "sleep 600")

	n.destroy(p, c)
	_, err = os.Stat(g.Path())
	must.NoError(t, err, must.Sprint("the host's group is the host's"))

	// A group of another allocation, or of many tasks, is not the task's own.
	third := n.task("echo ready; exec sleep 600")
	third.Resources = &pb.Resources{LinuxResources: &pb.LinuxResources{CpusetCgroup: filepath.Dir(g.Path())}}
	n.start(p, third)
	st, err := n.inspect(p, third)
	must.NoError(t, err)
	must.StrContains(t, st.GetDriver().GetAttributes()["cgroup"], third.GetAllocId()+"."+third.GetName())
	n.destroy(p, third)
}

// A task exits immediately, many times: no process, file or thread is left. NODEDRAIN_EXITS is the
// number.
func TestExits(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	pid, err := strconv.Atoi(p.client.ID())
	must.NoError(t, err)
	count := func(name string) int {
		entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), name))
		must.NoError(t, err)
		return len(entries)
	}
	times := 200
	if raceEnabled { // a shim with the race detector starts slowly
		times = 30
	}
	if more, err := strconv.Atoi(os.Getenv("NODEDRAIN_EXITS")); err == nil {
		times = more
	}
	c := n.task("")
	c.MsgpackDriverConfig = n.config(map[string]any{"command": "/bin/false"})
	id := c.GetId()
	var files int
	for i := range times {
		c.Id = id + "-" + strconv.Itoa(i)
		_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
		must.NoError(t, err)
		must.Eq(t, int32(1), n.wait(p, c).GetResult().GetExitCode())
		n.destroy(p, c)
		if i == 20 {
			files = count("fd")
		}
	}
	must.Less(t, files+5, count("fd"))
	must.Less(t, 40, count("task"))
	n.empty()
}

func TestExec(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; while ! test -e go; do sleep 0.02; done")
	handle := n.start(p, c)
	run := func(timeout time.Duration, command ...string) (*pb.ExecTaskResponse, error) {
		return p.ExecTask(t.Context(), &pb.ExecTaskRequest{TaskId: c.GetId(), Command: command, Timeout: durationpb.New(timeout)})
	}
	r, err := run(time.Minute, "sh", "-c", "pwd; echo $MARK $OF_THE_PLUGIN; echo no >&2; cat /proc/self/cgroup; exit 9")
	must.NoError(t, err)
	must.Eq(t, int32(9), r.GetResult().GetExitCode())
	must.Eq(t, "no\n", string(r.GetStderr()))
	must.StrHasPrefix(t, filepath.Join(c.GetAllocDir(), c.GetName())+"\n"+n.mark()+"\n", string(r.GetStdout()))
	must.StrContains(t, string(r.GetStdout()), c.GetAllocId()+"."+c.GetName())
	r, err = run(time.Second, "sh", "-c", "sleep 3600 & sleep 3600")
	must.NoError(t, err)
	must.Eq(t, int32(137), r.GetResult().GetExitCode())
	_, err = run(time.Second)
	must.ErrorContains(t, err, "the command is empty")
	_, err = run(time.Second, "does-not-exist")
	must.ErrorContains(t, err, "no program")
	_, err = run(time.Second, "/does/not/exist")
	must.ErrorContains(t, err, `no program "/does/not/exist": the path is not an executable file`)

	// A process that has not recovered the task does not have its environment.
	p = n.relaunch(p)
	_, err = run(time.Second, "true")
	must.ErrorContains(t, err, "was not recovered")
	must.NoError(t, n.recover(p, handle))
	_, err = run(time.Second, "true")
	must.NoError(t, err)

	// An exec ends with its task.
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	_, err = run(0, "sleep", "600")
	if err != nil {
		must.ErrorContains(t, err, "has ended")
	}
	must.Eq(t, int32(0), n.wait(p, c).GetResult().GetExitCode())
	must.Eq(t, nil, n.processes())
	n.end(p, c)
}

// A command beside a task on a machine without control groups. Bug: what it had started in the background
// or in a session of its own lived on after the end of the task.
func TestExec_withoutGroups(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.only("none")
	p := n.launch()
	c := n.task("echo ready; exec sleep 600")
	n.start(p, c)
	run := func(script string) error {
		_, err := p.ExecTask(t.Context(), &pb.ExecTaskRequest{TaskId: c.GetId(), Command: []string{"sh", "-c", script}})
		return err
	}
	must.NoError(t, run("sleep 600 >&- 2>&- & exit 0"))
	must.SliceLen(t, 1, n.processes())
	ended := make(chan error, 1)
	go func() { ended <- run("setsid sh -c 'trap \"\" TERM; sleep 600 & wait' & wait") }()
	n.living(4)
	must.NoError(t, n.stop(p, c, time.Minute, "SIGTERM"))
	must.NoError(t, <-ended)
	n.end(p, c)
}

func TestExecStreaming(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; exec sleep 600")
	n.start(p, c)
	for name, tt := range map[string]struct {
		tty      bool
		script   string
		input    string
		expected string
	}{
		"pipes":    {false, "cat; test -t 0 || echo no terminal; exit 5", "a\nb", "a\nbno terminal\n"},
		"terminal": {true, "read x; stty size; test -t 0 && echo got $x; exit 5", "a\n", "a\r\n44 99\r\ngot a\r\n"},
		// Bug: no test had a program that reads a terminal until its end.
		"all of a terminal": {true, "cat; exit 5", "a\n", "a\r\na\r\n"},
	} {
		stream, err := p.ExecTaskStreaming(t.Context())
		must.NoError(t, err)
		for _, m := range []*pb.ExecTaskStreamingRequest{
			{Setup: &pb.ExecTaskStreamingRequest_Setup{TaskId: c.GetId(), Command: []string{"sh", "-c", "sleep 0.2; " + tt.script}, Tty: tt.tty}},
			{TtySize: &pb.ExecTaskStreamingRequest_TerminalSize{Height: 44, Width: 99}},
			{Stdin: &pb.ExecTaskStreamingIOOperation{Data: []byte(tt.input)}},
			{Stdin: &pb.ExecTaskStreamingIOOperation{Close: true}},
		} {
			must.NoError(t, stream.Send(m))
		}
		var out string
		for {
			m, err := stream.Recv()
			must.NoError(t, err, must.Sprint(name, out))
			out += string(m.GetStdout().GetData())
			if m.GetExited() {
				must.Eq(t, int32(5), m.GetResult().GetExitCode(), must.Sprint(name, out))
				break
			}
		}
		must.Eq(t, tt.expected, out, must.Sprint(name))
	}
	// The user disconnects: the command ends.
	ctx, hangUp := context.WithCancel(t.Context())
	stream, err := p.ExecTaskStreaming(ctx)
	must.NoError(t, err)
	must.NoError(t, stream.Send(&pb.ExecTaskStreamingRequest{Setup: &pb.ExecTaskStreamingRequest_Setup{TaskId: c.GetId(), Command: []string{"sh", "-c", "echo on; sleep 600"}, Tty: true}}))
	_, err = stream.Recv()
	must.NoError(t, err)
	hangUp()
	n.living(1)
	n.end(p, c)
}

func TestStats(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; while ! test -e go; do :; done")
	n.start(p, c)
	stream, err := p.TaskStats(t.Context(), &pb.TaskStatsRequest{TaskId: c.GetId(), CollectionInterval: durationpb.New(100 * time.Millisecond)})
	must.NoError(t, err)
	for {
		r, err := stream.Recv()
		must.NoError(t, err)
		usage := r.GetStats().GetAggResourceUsage()
		must.Greater(t, uint64(100<<10), usage.GetMemory().GetRss())
		if usage.GetCpu().GetPercent() > 1 {
			break
		}
	}
	must.NoError(t, os.WriteFile(filepath.Join(c.GetAllocDir(), c.GetName(), "go"), nil, 0o644))
	for err == nil {
		_, err = stream.Recv()
	}
	must.ErrorIs(t, err, io.EOF, must.Sprint("the stream ends with the task"))
	n.end(p, c)
}

// The events of a task report facts that its operator cannot see elsewhere.
func TestEvents(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	c := n.task("echo ready; exec sleep 600")
	n.start(p, c)
	stream, err := p.TaskEvents(t.Context(), &pb.TaskEventsRequest{})
	must.NoError(t, err)
	ready, err := p.Fingerprint(t.Context(), &pb.FingerprintRequest{})
	must.NoError(t, err)
	f, err := ready.Recv()
	must.NoError(t, err)
	must.Eq(t, pb.FingerprintResponse_HEALTHY, f.GetHealth())
	must.Eq(t, "1", f.GetAttributes()["driver.raw_exec.rotates_logs"].GetStringVal())
	must.NoError(t, syscall.Kill(n.pid(p, c, "shim_pid"), syscall.SIGKILL))
	e, err := stream.Recv()
	must.NoError(t, err)
	must.Eq(t, c.GetId(), e.GetTaskId())
	must.StrContains(t, e.GetMessage(), "the shim of the task died")
	n.end(p, c)
}

// A shim has at most 4 MiB of private memory, also while it rotates logs.
func TestShim_memory(t *testing.T) {
	n := newNode(t)
	if raceEnabled {
		t.Skip("the race detector needs more memory")
	}
	p := n.launch()
	for range 3 {
		c := n.task("echo ready; exec sleep 600")
		logs := filepath.Join(n.dir, "logs"+c.GetName())
		must.NoError(t, os.Mkdir(logs, 0o755))
		c.StdoutPath, c.StderrPath = "rotate:"+logs+"/web.stdout", "rotate:"+logs+"/web.stderr"
		for i := range 200 {
			c.Env["VARIABLE_"+strconv.Itoa(i)] = strings.Repeat("x", 500)
		}
		_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
		must.NoError(t, err)
		shim := n.pid(p, c, "shim_pid")
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(shim), "comm"))
		must.NoError(t, err)
		must.Eq(t, "raw_exec-shim\n", string(name))
		private := n.privateMemory(shim)
		t.Logf("%d KiB", private)
		must.LessEq(t, 4096, private)
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	n, p := launched(t)
	must.NoError(t, os.Chmod(n.dir, 0o755))
	for dir := n.dir; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		must.NoError(t, os.Chmod(dir, 0o755))
	}
	for _, user := range []string{"daemon", "1"} {
		c := n.task("id -u; id -G; echo $HOME")
		c.User = user
		_, err := p.StartTask(t.Context(), &pb.StartTaskRequest{Task: c})
		must.NoError(t, err)
		must.Eq(t, int32(0), n.wait(p, c).GetResult().GetExitCode())
		must.Eq(t, "1\n1\n\n", n.stdout(c))
		n.destroy(p, c)
	}
	n.empty()
}
