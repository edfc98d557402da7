package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
)

// releasedSite is a site of one node with plugins that behave on the wire as released plugins do.
type releasedSite struct {
	*site
	node *realNode
	id   string // of the node
	// machine is the folder of the plugins' devices and containers.
	machine, plugins, program string
}

// startReleased starts a site with the plugins, and waits until they have reported.
func startReleased(t *testing.T, names ...string) *releasedSite {
	t.Helper()
	needMachine(t)
	s := &releasedSite{site: startSite(t, 0, true), program: filepath.Join(t.TempDir(), "released"), plugins: t.TempDir()}
	programs.Build(t, "../../plugin/plugintest/testdata/released", s.program)
	s.machine = t.TempDir()
	t.Cleanup(func() {
		if s.node != nil && s.node.client != nil {
			s.crash(s.node)
		}
		s.killPlugins("")
		for _, task := range s.left() {
			pid, _, _ := strings.Cut(task, " ")
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	})
	s.setGPUs("GPU-1 ok", "GPU-2 ok")
	must.NoError(t, os.WriteFile(filepath.Join(s.machine, "skeletons"), []byte("s1 A ok\ns2 B ok\n"), 0o600))
	for _, name := range names {
		script := fmt.Sprintf("#!/bin/sh\nexec %s %s %s\n", s.program, name, s.machine)
		must.NoError(t, os.WriteFile(filepath.Join(s.plugins, name), []byte(script), 0o700))
	}
	s.node = s.newNode("n1", true, fmt.Sprintf("plugin_dir = %q\n", s.plugins))
	s.begin(s.node)
	s.await("the node", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false
		}
		s.id = nodes[0].ID
		return true
	})
	s.await("the driver raw_exec", func() bool { return s.healthy("raw_exec") })
	return s
}

// info returns the servers' state of the node.
func (s *releasedSite) info() *api.Node {
	s.t.Helper()
	n, _, err := s.api.Nodes().Info(s.id, nil)
	must.NoError(s.t, err)
	return n
}

func (s *releasedSite) healthy(driver string) bool {
	d := s.info().Drivers[driver]
	return d != nil && d.Healthy
}

// setGPUs changes the GPUs of the machine.
func (s *releasedSite) setGPUs(lines ...string) {
	s.t.Helper()
	text := strings.ReplaceAll(strings.Join(lines, "\n"), " ", " H200 ") + "\n"
	path := filepath.Join(s.machine, "gpus")
	must.NoError(s.t, os.WriteFile(path+".new", []byte(text), 0o600))
	must.NoError(s.t, os.Rename(path+".new", path))
}

// devices are the devices of the node with their bus ids and health, in the order of the servers.
func (s *releasedSite) devices() (all []string) {
	for _, g := range s.info().NodeResources.Devices {
		for _, d := range g.Instances {
			word := fmt.Sprintf("%s/%s/%s/%s", g.Vendor, g.Type, g.Name, d.ID)
			if d.Locality != nil && d.Locality.PciBusID != "" {
				word += " at " + d.Locality.PciBusID
			}
			if !d.Healthy {
				word += " is unhealthy"
			}
			all = append(all, word)
		}
	}
	return all
}

// awaitDevices waits for the devices. Until then no device may vanish from the node.
func (s *releasedSite) awaitDevices(want ...string) {
	s.t.Helper()
	var got []string
	s.await("the devices", func() bool {
		got = s.devices()
		must.SliceLen(s.t, len(want), got, must.Sprint(got))
		return strings.Join(got, "\n") == strings.Join(want, "\n")
	})
}

// pluginsOf returns the processes of a plugin, or of all plugins, without those of containers.
func (s *releasedSite) pluginsOf(name string) (all []int) {
	for _, pid := range pids(s.t) {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // the process may have ended
		words := bytes.Split(line, []byte{0})
		if len(words) >= 3 && string(words[0]) == s.program && string(words[2]) == s.machine && (name == "" || string(words[1]) == name) {
			all = append(all, pid)
		}
	}
	return all
}

// left are the processes of tasks and the parents of their containers.
func (s *releasedSite) left() []string {
	all := s.ofTasks()
	for _, pid := range pids(s.t) {
		folder, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd")) // the process may have ended
		if strings.HasPrefix(folder, s.machine+"/") {
			all = append(all, fmt.Sprint(pid, " the parent of a container"))
		}
	}
	return all
}

// killPlugins kills the processes of a plugin, or of all plugins.
func (s *releasedSite) killPlugins(name string) {
	for _, pid := range s.pluginsOf(name) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// run registers a service of one task, and waits until it has noted its start.
func (s *releasedSite) run(id string, task *api.Task) string {
	s.t.Helper()
	kind, cpu, memory, timeout, quick, long := "service", 100, 64, grace, 100*time.Millisecond, time.Minute
	one, attempts, mode := 1, 10, "fail"
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	group := api.NewTaskGroup("g", 1)
	group.Migrate = &api.MigrateStrategy{MaxParallel: &one, MinHealthyTime: &quick, HealthyDeadline: &long}
	group.RestartPolicy = &api.RestartPolicy{Attempts: &attempts, Interval: &long, Delay: &quick, Mode: &mode}
	if task.Resources == nil {
		task.Resources = &api.Resources{}
	}
	task.Resources.CPU, task.Resources.MemoryMB = &cpu, &memory
	task.KillTimeout, task.KillSignal = &timeout, "SIGTERM"
	_, _, err := s.api.Jobs().Register(job.AddTaskGroup(group.AddTask(task)), nil)
	must.NoError(s.t, err)
	var alloc string
	s.await("the task of "+id, func() bool {
		for _, a := range s.allocs(id) {
			if a.ClientStatus == "running" && len(s.noted(a.ID, task.Name, "start")) == 1 {
				alloc = a.ID
			}
		}
		return alloc != ""
	})
	return alloc
}

// drain drains the node, and waits for the end of the drain.
func (s *releasedSite) drain(deadline time.Duration) {
	s.t.Helper()
	_, err := s.api.Nodes().UpdateDrainOpts(s.id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: deadline}}, nil)
	must.NoError(s.t, err)
	s.await("the end of the drain", func() bool { return s.info().DrainStrategy == nil })
}

// ended checks that nothing is left of an allocation, and returns the events of its task.
func (s *releasedSite) ended(alloc, task string) string {
	s.t.Helper()
	must.SliceEmpty(s.t, s.left(), must.Sprint("the drain is complete"))
	a, _, err := s.api.Allocations().Info(alloc, nil)
	must.NoError(s.t, err)
	must.Eq(s.t, "complete", a.ClientStatus, must.Sprint(a.ClientDescription))
	return s.events(alloc, task)
}

func (s *releasedSite) events(alloc, task string) (events string) {
	s.t.Helper()
	a, _, err := s.api.Allocations().Info(alloc, nil)
	must.NoError(s.t, err)
	for _, e := range a.TaskStates[task].Events {
		events += e.Type + ": " + e.DisplayMessage + "\n"
	}
	return events
}

// restartClient kills the client of the node and starts the next one.
func (s *releasedSite) restartClient() {
	s.t.Helper()
	s.crash(s.node)
	s.begin(s.node)
}

// The Nvidia plugin sends bus ids with the rest of their buffers. It and the skeleton device plugin
// report changes only. Their devices never vanish from the node: not when the client is killed, not
// when the plugins are. A task keeps its device and its process, and its exit code is true.
//
//race:skip its programs do not have the detector
func TestReleased_devices(t *testing.T) {
	t.Parallel()
	s := startReleased(t, "nvidia", "skeleton-device")
	all := []string{
		"hashicorp/gpu/A/s1", "hashicorp/gpu/B/s2", "nvidia/gpu/H200/GPU-1 at 00000000:01:00.0", "nvidia/gpu/H200/GPU-2 at 00000000:02:00.0",
	}
	s.await("the devices", func() bool { return len(s.devices()) == len(all) })
	s.awaitDevices(all...)
	problems := bytes.Count([]byte(fmt.Sprint(s.info().Attributes)), []byte("device_problem"))
	must.Zero(t, problems, must.Sprint(s.info().Attributes))

	one := uint64(1)
	task := api.NewTask("obeys", "raw_exec").Require(&api.Resources{Devices: []*api.RequestedDevice{{Name: "nvidia/gpu", Count: &one}}})
	task.Config = s.script(strings.Replace(obeys, "now() {", "echo gpu $NVIDIA_VISIBLE_DEVICES >>%[1]s/gpu; now() {", 1))
	alloc := s.run("train", task)
	gpu, err := os.ReadFile(filepath.Join(s.journal, "gpu"))
	must.NoError(t, err)
	must.StrContains(t, string(gpu), "gpu GPU-")

	for range 2 {
		before := s.pluginsOf("")
		s.restartClient()
		s.await("other processes of the plugins", func() bool {
			must.SliceLen(t, len(all), s.devices())
			now := s.pluginsOf("")
			return len(now) == 2 && now[0] != before[0] && now[1] != before[1] && now[0] != before[1] && now[1] != before[0]
		})
		s.awaitDevices(all...)
	}
	s.killPlugins("nvidia")
	s.awaitDevices(all...)
	s.setGPUs("GPU-1 ok", "GPU-2 hot")
	s.awaitDevices(all[0], all[1], all[2], all[3]+" is unhealthy")
	must.SliceLen(t, 1, s.noted(alloc, "obeys", "start"), must.Sprint("the task kept its process"))

	s.drain(5 * time.Minute)
	must.StrContains(t, s.ended(alloc, "obeys"), "Exit Code: 7")
	s.end(s.node)
}

// What the client ignores of a device plugin is an attribute of the node, and costs nothing else.
//
//race:skip its programs do not have the detector
func TestReleased_ignoredDevices(t *testing.T) {
	t.Parallel()
	s := startReleased(t, "skeleton-device")
	must.NoError(t, os.WriteFile(filepath.Join(s.machine, "skeletons"), []byte("s1 A ok\ns1 B ok\ns2 B ok\n"), 0o600))
	s.await("the devices", func() bool { return strings.Join(s.devices(), " ") == "hashicorp/gpu/B/s2" })
	must.StrContains(t, s.info().Attributes["unique.device_problem.skeleton-device"], `the device "s1" of the group "hashicorp/gpu/A" is ignored: 2 devices have this id`)
	out, err := exec.CommandContext(t.Context(), s.binary, "node", "status", "-address", s.address, "-token", s.config.SecretID, s.id).CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
	must.StrContains(t, string(out), "Device Problems")
	must.StrContains(t, string(out), `the device "s1" of the group "hashicorp/gpu/A" is ignored`)
	s.end(s.node)
}

// podmanTask is a container. Its labels are a list with one map.
func (s *releasedSite) podmanTask(name, script string) *api.Task {
	task := api.NewTask(name, "podman")
	task.Config = s.script(script)
	task.Config["image"], task.Config["labels"] = "busybox", []map[string]string{{"a": "b"}}
	return task
}

func (s *releasedSite) lxcTask(name, script string) *api.Task {
	task := api.NewTask(name, "lxc")
	task.Config = s.script(script)
	return task
}

// The schema of podman has a default that omits attributes. Containers of podman and LXC run on while
// client and plugins are killed. The skeleton driver keeps its tasks over a restart of the client. It
// cannot take them over after its own death: the loss is reported, and the task starts again.
//
//race:skip its programs do not have the detector
func TestReleased_drivers(t *testing.T) {
	t.Parallel()
	s := startReleased(t, "podman", "lxc", "skeleton")
	for _, name := range []string{"podman", "lxc", "skeleton"} {
		s.await("the driver "+name, func() bool { return s.healthy(name) })
	}
	inPodman := s.run("podman", s.podmanTask("obeys", obeys))
	inLXC := s.run("lxc", s.lxcTask("obeys", obeys))
	inLXCDeaf := s.run("deaf", s.lxcTask("deaf", deaf))
	task := api.NewTask("obeys", "skeleton")
	task.Config = s.script(obeys)
	inSkeleton := s.run("skeleton", task)
	everyOne := func() {
		t.Helper()
		for _, alloc := range []string{inPodman, inLXC} {
			must.SliceLen(t, 1, s.noted(alloc, "obeys", "start"))
			must.SliceEmpty(t, s.noted(alloc, "obeys", "end"))
		}
		must.SliceLen(t, 1, s.noted(inLXCDeaf, "deaf", "start"))
	}

	before := s.pluginsOf("")
	s.restartClient()
	s.await("the next client", func() bool { return strings.Count(s.node.logs.String(), `plugin="driver `) >= 8 })
	must.Eq(t, before, s.pluginsOf(""), must.Sprint("drivers outlive the client"))
	must.SliceLen(t, 1, s.noted(inSkeleton, "obeys", "start"))
	everyOne()

	s.killPlugins("")
	s.await("the second start of the skeleton's task", func() bool { return len(s.noted(inSkeleton, "obeys", "start")) == 2 })
	everyOne()
	s.crash(s.node)
	s.killPlugins("")
	s.begin(s.node)
	s.await("the third start of the skeleton's task", func() bool { return len(s.noted(inSkeleton, "obeys", "start")) == 3 })
	for _, name := range []string{"podman", "lxc", "skeleton"} {
		s.await("the driver "+name, func() bool { return s.healthy(name) })
	}
	everyOne()
	must.StrContains(t, s.events(inSkeleton, "obeys"), "failed to decode driver config: EOF")

	s.drain(5 * time.Minute)
	must.StrContains(t, s.events(inLXC, "obeys"), "Exit Code: 7")
	must.StrContains(t, s.events(inLXCDeaf, "deaf"), "Exit Code: 137")
	s.end(s.node)
}

// The WaitTask of podman answers with code 0 as soon as a container is stopping. The drain is complete
// only when the containers have ended, after their whole grace, and their exit codes are true.
//
//race:skip its programs do not have the detector
func TestReleased_podmanStops(t *testing.T) {
	t.Parallel()
	s := startReleased(t, "podman")
	s.await("the driver podman", func() bool { return s.healthy("podman") })
	quick := s.run("quick", s.podmanTask("obeys", obeys))
	slow := s.run("slow", s.podmanTask("deaf", deaf))
	s.drain(5 * time.Minute)
	must.StrContains(t, s.ended(quick, "obeys"), "Exit Code: 7")
	must.StrContains(t, s.ended(slow, "deaf"), "Exit Code: 137")
	must.SliceLen(t, 1, s.noted(quick, "obeys", "end"), must.Sprint("its half second was cut"))
	s.end(s.node)
}
