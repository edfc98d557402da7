package cgroup_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// hierarchies returns the real hierarchies of this machine, as if only those of one version were
// mounted. It skips the test where there is none.
func hierarchies(t *testing.T, version string) cgroup.Hierarchies {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it creates control groups")
	}
	all, err := os.ReadFile("/proc/self/mountinfo")
	must.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(all)) {
		if isV2 := strings.Contains(line, " - cgroup2 "); version == "both" || isV2 == (version == "v2") {
			lines = append(lines, line)
		}
	}
	root := fakeRoot(t, strings.Join(lines, ""))
	must.NoError(t, os.Symlink("/sys", filepath.Join(root, "sys")))
	h, err := cgroup.Find(root)
	must.NoError(t, err)
	if expected := strings.Replace(version, "both", "v2", 1); h.Kind() != expected {
		t.Skipf("needs a control group hierarchy of %s, and has %s", expected, h.Kind())
	}
	return h
}

// fakeRoot returns a folder with a file of mounts.
func fakeRoot(t *testing.T, mountinfo string) string {
	t.Helper()
	root := t.TempDir()
	must.NoError(t, os.MkdirAll(filepath.Join(root, "proc/self"), 0o755))
	must.NoError(t, os.WriteFile(filepath.Join(root, "proc/self/mountinfo"), []byte(mountinfo), 0o644))
	return root
}

// create creates a group that is gone after the test.
func create(t *testing.T, h cgroup.Hierarchies) *cgroup.Group {
	t.Helper()
	g, err := h.Create("test-"+rand.Text()+"."+strings.ReplaceAll(t.Name(), "/", "_"),
		cgroup.Limits{CPUShares: 512, MemoryBytes: 1 << 30})
	must.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		must.NoError(t, g.Kill(ctx))
		must.NoError(t, g.Wait(ctx))
		must.NoError(t, g.Remove(ctx))
	})
	return g
}

// shell runs a script in the group and returns after it has printed a line.
func shell(t *testing.T, g *cgroup.Group, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	out, in, err := os.Pipe() // a file, so that Wait does not wait for children of the shell
	must.NoError(t, err)
	defer out.Close()
	cmd.Stdout = in
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	must.NoError(t, g.Start(cmd.SysProcAttr, cmd.Start))
	in.Close()
	t.Cleanup(func() {
		must.NoError(t, g.Kill(context.Background()))
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(t, err)
	must.Eq(t, "ready\n", line)
	return cmd
}

func eachVersion(t *testing.T, test func(t *testing.T, h cgroup.Hierarchies)) {
	t.Helper()
	for _, version := range []string{"v2", "v1", "both"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, hierarchies(t, version))
		})
	}
}

func TestGroup_killReachesWhatForkedAway(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		ctx := context.Background()
		g := create(t, h)
		populated, err := g.Populated()
		must.NoError(t, err)
		must.False(t, populated)
		must.NoError(t, g.Wait(ctx))

		own, err := os.ReadFile("/proc/self/cgroup")
		must.NoError(t, err)
		cmd := shell(t, g, "trap '' TERM; setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & echo ready; while :; do sleep 0.01; done")
		still, err := os.ReadFile("/proc/self/cgroup")
		must.NoError(t, err)
		must.Eq(t, string(own), string(still), must.Sprint("this process stays where it was"))

		populated, err = g.Populated()
		must.NoError(t, err)
		must.True(t, populated)
		pids, err := g.PIDs()
		must.NoError(t, err)
		must.SliceContains(t, pids, cmd.Process.Pid)
		brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		must.ErrorIs(t, g.Wait(brief), context.DeadlineExceeded)
		busy, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		must.ErrorContains(t, g.Remove(busy), "busy")

		must.NoError(t, g.Kill(ctx))
		must.NoError(t, g.Wait(ctx))
		populated, err = g.Populated()
		must.NoError(t, err)
		must.False(t, populated)
		_ = cmd.Wait()
		must.Eq(t, "signal: killed", cmd.ProcessState.String())
		must.NoError(t, g.Remove(ctx))
		must.NoError(t, g.Remove(ctx), must.Sprint("what is gone is removed"))
		must.NoError(t, g.Kill(ctx))
		must.NoError(t, g.Wait(ctx))
	})
}

// A signal reaches the processes of groups below and of other sessions, and no process elsewhere.
func TestGroup_Signal(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		g, other := create(t, h), create(t, h)
		must.NoError(t, g.Signal(syscall.SIGTERM), must.Sprint("an empty group"))
		stranger := shell(t, other, "echo ready; exec sleep 600")
		cmd := shell(t, g, "trap : USR1; setsid sh -c 'trap \"exit 7\" USR1; echo ready; while :; do sleep 0.01; done' & "+
			"while wait $!; code=$?; [ $code -gt 128 ]; do :; done; exit $code") // the signal interrupts a wait
		must.NoError(t, g.Signal(syscall.SIGUSR1))
		must.Error(t, cmd.Wait())
		must.Eq(t, "exit status 7", cmd.ProcessState.String())
		must.NoError(t, g.Wait(t.Context()))
		alive, err := other.Populated()
		must.NoError(t, err)
		must.True(t, alive)
		must.NoError(t, stranger.Process.Kill())
	})
}

// The thread that forks a process into a group of v1 is a guest there. A kill of the group once killed
// the whole program of that thread, and a wait for the group waited for the program's end.
func TestGroup_theForkingThreadIsAGuest(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		g := create(t, h)
		called := false
		must.NoError(t, g.Start(&syscall.SysProcAttr{}, func() error {
			called = true
			pids, err := g.PIDs()
			must.NoError(t, err)
			must.Eq(t, nil, pids)
			populated, err := g.Populated()
			must.NoError(t, err)
			must.False(t, populated)
			must.NoError(t, g.Kill(t.Context()))
			must.NoError(t, g.Wait(t.Context()))
			return nil
		}))
		must.True(t, called)
	})
}

// The wait of v2 is woken while other waits are cancelled and the group lives on.
func TestGroup_waitIsWoken(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		g := create(t, h)
		cmd := shell(t, g, "echo ready; exec sleep 600")
		done := make(chan error, 3)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { done <- g.Wait(ctx) }()
		go func() { done <- g.Wait(context.Background()) }()
		go func() { done <- g.Wait(context.Background()) }()
		cancel()
		must.ErrorIs(t, <-done, context.Canceled)
		must.NoError(t, cmd.Process.Kill())
		must.NoError(t, <-done)
		must.NoError(t, <-done)
	})
}

// NP-K8: the task has frozen a group below its own. NP-K7: groups below are removed first.
func TestGroup_frozenChildGroup(t *testing.T) {
	t.Parallel()
	for version, files := range map[string][3]string{
		"v1": {"freezer.state", "FROZEN", "tasks"},
		"v2": {"cgroup.freeze", "1", "cgroup.procs"},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			g := create(t, hierarchies(t, version))
			cmd := shell(t, g, "echo ready; exec sleep 600")
			child := filepath.Join(g.Path(), "a")
			must.NoError(t, os.MkdirAll(filepath.Join(child, "b"), 0o755))
			must.NoError(t, os.WriteFile(filepath.Join(child, files[2]), []byte(strconv.Itoa(cmd.Process.Pid)), 0))
			must.NoError(t, os.WriteFile(filepath.Join(child, files[0]), []byte(files[1]), 0))
			pids, err := g.PIDs()
			must.NoError(t, err)
			must.Eq(t, []int{cmd.Process.Pid}, pids)
			must.NoError(t, g.Kill(ctx))
			must.NoError(t, g.Wait(ctx))
			must.NoError(t, g.Remove(ctx))
			_, err = os.Stat(g.Path())
			must.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// awaitProgram waits until a process executes a program: a shell prints its line before.
func awaitProgram(t *testing.T, pid int, name string) {
	t.Helper()
	for {
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		must.NoError(t, err)
		cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		must.NoError(t, err)
		if strings.TrimSpace(string(comm)) == name && len(cmdline) > 0 {
			return
		}
		runtime.Gosched()
	}
}

// NP-K6: the task has made a group of threads below its own. cgroup.procs cannot be read there. (The
// kernel refuses to make a group with processes threaded, so that its own never is.)
func TestGroup_threaded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := create(t, hierarchies(t, "v2"))
	pid := shell(t, g, "echo ready; exec sleep 600").Process.Pid
	child := filepath.Join(g.Path(), "child")
	must.NoError(t, os.Mkdir(child, 0o755))
	must.NoError(t, os.WriteFile(filepath.Join(child, "cgroup.type"), []byte("threaded"), 0))
	must.NoError(t, os.WriteFile(filepath.Join(child, "cgroup.threads"), []byte(strconv.Itoa(pid)), 0))
	pids, err := g.PIDs()
	must.NoError(t, err)
	must.Eq(t, []int{pid}, pids)
	awaitProgram(t, pid, "sleep")
	remaining, err := g.Remaining()
	must.NoError(t, err)
	must.StrContains(t, remaining[0].String(), "sleep 600")
	must.NoError(t, g.Kill(ctx))
	must.NoError(t, g.Wait(ctx))
	must.NoError(t, g.Remove(ctx))
}

// NP-K7: a process that cannot be killed ends no wait and no removal. A freezer of v1 plays state D.
func TestGroup_processThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	v1, v2 := hierarchies(t, "v1"), hierarchies(t, "v2")
	g, ice := create(t, v2), create(t, v1)
	cmd := shell(t, g, "echo ready; exec sleep 600")
	must.NoError(t, os.WriteFile(filepath.Join(ice.Path(), "tasks"), []byte(strconv.Itoa(cmd.Process.Pid)), 0))
	must.NoError(t, os.WriteFile(filepath.Join(ice.Path(), "freezer.state"), []byte("FROZEN"), 0))

	must.NoError(t, g.Kill(ctx))
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	must.ErrorIs(t, g.Wait(brief), context.DeadlineExceeded)
	killed, err := cgroup.Killed(g)
	must.NoError(t, err)
	must.SliceLen(t, 1, killed)
	must.EqOp(t, cmd.Process.Pid, killed[0].PID)
	populated, err := g.Populated()
	must.NoError(t, err)
	must.True(t, populated)
	err = g.Remove(ctx)
	must.ErrorContains(t, err, "pid "+strconv.Itoa(cmd.Process.Pid))
	must.ErrorContains(t, err, "state D")
	must.ErrorContains(t, err, "sleep 600")

	must.NoError(t, os.WriteFile(filepath.Join(ice.Path(), "freezer.state"), []byte("THAWED"), 0))
	must.NoError(t, g.Wait(ctx))
	must.NoError(t, g.Remove(ctx))
}

// The first thread of a program has ended, and others run. Bug: cgroup.kill of v2 ended no such process,
// and a group of v1 counted as empty.
func TestGroup_firstThreadEnded(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g := create(t, h)
		program, err := os.Executable()
		must.NoError(t, err)
		cmd := shell(t, g, asHeadless+"=1 exec "+program)
		for ended := false; !ended; runtime.Gosched() { // the first thread ends soon
			ended, err = process.LeaderEnded(cmd.Process.Pid)
			must.NoError(t, err)
		}
		populated, err := g.Populated()
		must.NoError(t, err)
		must.True(t, populated)
		pids, err := g.PIDs()
		must.NoError(t, err)
		must.Eq(t, []int{cmd.Process.Pid}, pids)
		must.NoError(t, g.Kill(ctx))
		must.NoError(t, g.Wait(ctx))
		_ = cmd.Wait()
		must.Eq(t, "signal: killed", cmd.ProcessState.String())
	})
}

// Processes fork while they are killed.
func TestGroup_killWhileForking(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		ctx := context.Background()
		g := create(t, h)
		shell(t, g, "fork() { while :; do sleep 0.5 & sleep 0.01; done; }; fork & setsid sh -c 'while :; do sleep 0.01; done' & echo ready; fork")
		must.NoError(t, g.Kill(ctx))
		must.NoError(t, g.Wait(ctx))
		pids, err := g.PIDs()
		must.NoError(t, err)
		must.Eq(t, nil, pids)
	})
}

func TestOpenPath(t *testing.T) {
	t.Parallel()
	h, err := cgroup.Find(fakeRoot(t, ""))
	must.NoError(t, err)
	must.Eq(t, "none", h.Kind())
	_, err = h.Create("a.b", cgroup.Limits{})
	must.ErrorIs(t, err, cgroup.ErrNone)

	const v1Mounts = "33 31 0:30 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"37 31 0:34 / /cg/freezer rw,relatime shared:5 - cgroup cgroup rw,freezer\n" +
		"40 31 0:37 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n"
	const v2Mount = "31 23 0:28 /part /elsewhere rw - cgroup2 cgroup2 rw\n41 31 0:38 / /cg/the\\040unified rw - cgroup2 cgroup2 rw\n"
	for name, tt := range map[string]struct {
		mounts, path string
		own          bool
	}{
		"v2":                       {v2Mount, "/cg/the unified/nomad.slice/share.slice/a.b.scope", true},
		"v2 reserved cores":        {v2Mount, "/cg/the unified/nomad.slice/reserve.slice/a.b.scope", true},
		"v2 beside v1":             {v1Mounts + v2Mount, "/cg/the unified/nomad.slice/share.slice/a.b.scope", true},
		"v2 after an odd line":     {"36 - a b\n" + v2Mount, "/cg/the unified/nomad.slice/share.slice/a.b.scope", true},
		"v1":                       {v1Mounts, "/cg/freezer/nomad/a.b", true},
		"v1 name like a scope":     {v1Mounts, "/cg/freezer/nomad/a.scope", true},
		"shared by tasks, v1":      {v1Mounts, "/cg/cpuset/nomad/share", false},
		"shared by tasks, v2":      {v2Mount, "/cg/the unified/nomad.slice/share.slice", false},
		"the mount":                {v2Mount, "/cg/the unified", false},
		"a path out of the parent": {v2Mount, "/cg/the unified/nomad.slice/share.slice/../../x.scope", false},
		"not a group":              {v2Mount, "/etc", false},
		"empty":                    {v2Mount, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fakeRoot(t, tt.mounts)
			h, err := cgroup.Find(root)
			must.NoError(t, err)
			g, err := h.OpenPath(filepath.Join(root, tt.path))
			if !tt.own {
				must.Error(t, err)
				return
			}
			must.NoError(t, err)
			must.Eq(t, filepath.Join(root, tt.path), g.Path())
		})
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\nb", "a\x00b", strings.Repeat("x", 201)} {
		h, err := cgroup.Find(fakeRoot(t, v2Mount))
		must.NoError(t, err)
		_, err = h.Open(name)
		must.ErrorContains(t, err, "not the name of a control group")
	}
}

// Controllers of v2 are passed down to the tasks, and limits are written where the kernel has files.
func TestCreate_limits(t *testing.T) {
	t.Parallel()
	root := fakeRoot(t, "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n")
	h, err := cgroup.Find(root)
	must.NoError(t, err)
	top := filepath.Join(root, "cg")
	task := filepath.Join(top, "nomad.slice/share.slice/a.b.scope")
	must.NoError(t, os.MkdirAll(task, 0o755))
	must.NoError(t, os.MkdirAll(filepath.Join(top, "nomad.slice/reserve.slice"), 0o755))
	must.NoError(t, os.WriteFile(filepath.Join(top, "cgroup.controllers"), []byte("cpu io memory\n"), 0o644))
	for _, file := range []string{
		"cgroup.subtree_control", "nomad.slice/cgroup.subtree_control", "nomad.slice/share.slice/cgroup.subtree_control",
		"nomad.slice/reserve.slice/cgroup.subtree_control",
		"nomad.slice/share.slice/a.b.scope/memory.max", "nomad.slice/share.slice/a.b.scope/cpu.weight",
		"nomad.slice/share.slice/a.b.scope/memory.low", "nomad.slice/share.slice/memory.low", "nomad.slice/memory.low",
	} {
		must.NoError(t, os.WriteFile(filepath.Join(top, file), nil, 0o644))
	}
	_, err = h.Create("a.b", cgroup.Limits{CPUShares: 262_144, MemoryBytes: 4096, MemoryLowBytes: 1024})
	must.NoError(t, err)
	for file, expected := range map[string]string{
		task + "/memory.max":                                    "4096",
		task + "/cpu.weight":                                    "10000",
		task + "/memory.low":                                    "1024",
		top + "/nomad.slice/share.slice/memory.low":             "1024",
		top + "/nomad.slice/memory.low":                         "1024",
		top + "/nomad.slice/share.slice/cgroup.subtree_control": "+memory", // a plain file keeps the last write
	} {
		got, err := os.ReadFile(file)
		must.NoError(t, err)
		must.Eq(t, expected, string(got))
	}
}

// A task with cores of its own is apart from the others, which share what is left. If nothing is left, they have
// all. The cores return when the group is removed.
func TestCreate_cores(t *testing.T) {
	t.Parallel()
	const mounts = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n33 31 0:30 / /v1 rw - cgroup cgroup rw,cpuset\n"
	root := fakeRoot(t, mounts)
	h, err := cgroup.Find(root)
	must.NoError(t, err)
	slice, set := filepath.Join(root, "cg/nomad.slice"), filepath.Join(root, "v1")
	for file, text := range map[string]string{
		slice + "/cpuset.cpus.effective": "0-3\n", slice + "/share.slice/cpuset.cpus": "\n", filepath.Join(root, "cg/cgroup.controllers"): "",
		set + "/cpuset.cpus": "0-3\n", set + "/cpuset.mems": "0\n", set + "/nomad/cpuset.cpus": "0-3\n", set + "/nomad/cpuset.mems": "0\n",
		set + "/nomad/share/cpuset.cpus": "0-3\n", set + "/nomad/share/cpuset.mems": "0\n",
	} {
		must.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	// The kernel makes the files of a new folder.
	group := func(name string) (folders []string) {
		for _, dir := range []string{slice + "/reserve.slice/" + name + ".scope", set + "/nomad/" + name} {
			must.NoError(t, os.MkdirAll(dir, 0o755))
			for _, file := range []string{"/cpuset.cpus", "/cpuset.mems"} {
				must.NoError(t, os.WriteFile(dir+file, nil, 0o644))
			}
			folders = append(folders, dir)
		}
		return folders
	}
	check := func(file, want string) {
		t.Helper()
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		must.Eq(t, want, strings.TrimSpace(string(text)), must.Sprint(file))
	}
	first, second := group("a.b"), group("c.d")
	g, err := h.Create("a.b", cgroup.Limits{Cores: []int{1, 2}})
	must.NoError(t, err)
	must.Eq(t, first[0], g.Path())
	for _, dir := range first {
		check(dir+"/cpuset.cpus", "1-2")
	}
	check(first[1]+"/cpuset.mems", "0")
	check(slice+"/share.slice/cpuset.cpus", "0,3")
	check(set+"/nomad/share/cpuset.cpus", "0,3")
	again, err := h.Open("a.b")
	must.NoError(t, err)
	must.Eq(t, g.Path(), again.Path(), must.Sprint("a group is found where it is"))
	of, err := h.OpenPath(g.Path())
	must.NoError(t, err)
	must.Eq(t, g.Path(), of.Path())

	for _, file := range []string{slice + "/share.slice/cpuset.cpus", set + "/nomad/share/cpuset.cpus"} {
		must.NoError(t, os.WriteFile(file, []byte("0\n"), 0o644)) // a plain file keeps what a shorter text does not cover
	}
	_, err = h.Create("c.d", cgroup.Limits{Cores: []int{0, 3}})
	must.NoError(t, err)
	check(slice+"/share.slice/cpuset.cpus", "")
	check(set+"/nomad/share/cpuset.cpus", "0-3")
	for _, dir := range append(first, second...) { // the kernel removes them with their folder
		must.NoError(t, os.Remove(dir+"/cpuset.cpus"))
		must.NoError(t, os.Remove(dir+"/cpuset.mems"))
	}
	must.NoError(t, os.WriteFile(second[0]+"/cpuset.cpus", []byte("0\n"), 0o644))
	must.NoError(t, g.Remove(t.Context()))
	check(slice+"/share.slice/cpuset.cpus", "1-3")
	must.True(t, h.Pins())
}

// A process of a group with a core of its own runs on this core.
func TestCreate_pins(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		shell(t, create(t, h), "echo ready; exec sleep 600")
		if !h.Pins() {
			t.Skip("needs a cpuset controller")
		}
		var may unix.CPUSet
		must.NoError(t, unix.SchedGetaffinity(0, &may))
		last := len(may) * 64
		for !may.IsSet(last - 1) {
			last--
		}
		g, err := h.Create("test-"+rand.Text()+".pin", cgroup.Limits{Cores: []int{last - 1}})
		must.NoError(t, err)
		t.Cleanup(func() {
			must.NoError(t, g.Wait(context.Background()))
			must.NoError(t, g.Remove(context.Background()))
		})
		cmd := shell(t, g, "echo ready; exec sleep 600")
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status"))
		must.NoError(t, err)
		must.StrContains(t, string(status), "\nCpus_allowed_list:\t"+strconv.Itoa(last-1)+"\n")
		pids, err := g.PIDs()
		must.NoError(t, err)
		must.Eq(t, []int{cmd.Process.Pid}, pids)
		listed, err := h.List()
		must.NoError(t, err)
		must.True(t, slices.ContainsFunc(listed, func(one *cgroup.Group) bool { return one.Name() == g.Name() && one.Path() == g.Path() }))
	})
}

// A group may use more than its protected part of the memory, up to its limit. The kernel ends what needs more.
func TestCreate_memory(t *testing.T) {
	t.Parallel()
	h := hierarchies(t, "both")
	name := "test-" + rand.Text() + ".memory"
	g, err := h.Create(name, cgroup.Limits{MemoryBytes: 64 << 20, MemoryLowBytes: 8 << 20})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, g.Remove(context.Background())) })
	limit := ""
	for _, file := range []string{filepath.Join(g.Path(), "memory.max"), "/sys/fs/cgroup/memory/nomad/" + name + "/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			limit = strings.TrimSpace(string(text))
		}
	}
	if limit == "" {
		t.Skip("needs a memory controller")
	}
	swaps, err := os.ReadFile("/proc/swaps")
	must.NoError(t, err)
	if strings.Count(string(swaps), "\n") > 1 {
		t.Skip("needs a machine without swap")
	}
	must.Eq(t, strconv.Itoa(64<<20), limit)
	fits := shell(t, g, "x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; exec sleep 600")
	must.NoError(t, fits.Process.Kill())
	_ = fits.Wait()
	oom, err := g.OOMKills()
	must.NoError(t, err)
	must.Zero(t, oom)
	big := exec.Command("/bin/sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo done")
	big.SysProcAttr = &syscall.SysProcAttr{}
	must.NoError(t, g.Start(big.SysProcAttr, big.Start))
	must.Error(t, big.Wait())
	oom, err = g.OOMKills()
	must.NoError(t, err)
	must.Positive(t, oom)
}

// A group has the owner that was written to it, until it is removed. The list has all groups, also those
// without an owner.
func TestGroup_owner(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, h cgroup.Hierarchies) {
		owned, free := create(t, h), create(t, h)
		if err := owned.SetOwner("me\x00x"); errors.Is(err, cgroup.ErrNoOwner) {
			t.Skipf("!!! NOT RUN: %v", err)
		} else {
			must.NoError(t, err)
		}
		must.NoError(t, owned.SetOwner("me\x00y"))
		all, err := h.List()
		must.NoError(t, err)
		owners := map[string]string{}
		for _, g := range all {
			if g.Name() == owned.Name() || g.Name() == free.Name() {
				owners[g.Name()], err = g.Owner()
				must.NoError(t, err)
			}
		}
		must.Eq(t, map[string]string{owned.Name(): "me\x00y", free.Name(): ""}, owners)

		must.NoError(t, owned.Remove(t.Context()))
		owner, err := owned.Owner()
		must.NoError(t, err)
		must.Eq(t, "", owner)
		must.NoError(t, owned.SetOwner("me"), must.Sprint("what is gone has no owner"))
		must.NoError(t, owned.Create(cgroup.Limits{}))
		owner, err = owned.Owner()
		must.NoError(t, err)
		must.Eq(t, "", owner, must.Sprint("a group that is created again"))
	})
}
