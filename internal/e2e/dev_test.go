package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// trial is "nodedrain dev" as people run it.
type trial struct {
	*servers
	binary, dir, address string
	process              *exec.Cmd // nil while none runs
	printed              *output
	api                  *api.Client
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	dir, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	must.NoError(t, os.Chmod(dir, 0o711)) // the users of tasks pass through it
	d := &trial{servers: &servers{t: t}, binary: filepath.Join(dir, "nodedrain"), dir: filepath.Join(dir, "d"), address: freePorts(t, 1)[0]}
	programs.Build(t, "../../cmd/nodedrain", d.binary)
	t.Cleanup(func() {
		if d.process != nil {
			_ = d.process.Process.Kill()
			_ = d.process.Wait()
		}
		for _, pid := range d.left() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		must.NoError(t, os.RemoveAll(dir))
	})
	return d
}

// command is a command line of dev with the trial's directory.
func (d *trial) command(args ...string) *exec.Cmd {
	return exec.Command(d.binary, append([]string{"dev", "-dir", d.dir}, args...)...)
}

// begin starts it, and waits until its jobs run.
func (d *trial) begin(args ...string) {
	d.t.Helper()
	d.printed = new(output)
	d.process = d.command(append(args, "-addr", d.address)...)
	d.process.Stdout, d.process.Stderr = d.printed, d.printed
	must.NoError(d.t, d.process.Start())
	d.await("the guide", func() bool { return strings.Contains(d.printed.String(), "Ctrl-C ends all of it.") })
	secret, err := os.ReadFile(filepath.Join(d.dir, "token"))
	must.NoError(d.t, err)
	d.api, err = api.NewClient(&api.Config{Address: "http://" + d.address, SecretID: strings.TrimSpace(string(secret))})
	must.NoError(d.t, err)
}

// end sends SIGTERM to the process, and expects that nothing is left.
func (d *trial) end() {
	d.t.Helper()
	must.NoError(d.t, d.process.Process.Signal(syscall.SIGTERM))
	must.NoError(d.t, d.process.Wait(), must.Sprint(d.printed.String()))
	d.process = nil
	d.nothingLeft()
}

func (d *trial) nothingLeft() {
	d.t.Helper()
	must.SliceEmpty(d.t, d.left())
	_, err := os.Stat(d.dir)
	must.ErrorIs(d.t, err, os.ErrNotExist)
}

// left are the processes of the trial: those of its program, and those with its directory in their
// environment.
func (d *trial) left() (found []int) {
	for _, pid := range pids(d.t) {
		place := filepath.Join("/proc", strconv.Itoa(pid))
		env, _ := process.Environment(pid) // the process may have ended
		exe, _ := os.Readlink(filepath.Join(place, "exe"))
		if strings.TrimSuffix(exe, " (deleted)") == d.binary || strings.Contains(string(env), "="+d.dir+"/") {
			found = append(found, pid)
		}
	}
	return found
}

// listeners returns the addresses of TCP over IPv4 and IPv6 at which a process listens.
func listeners(t *testing.T, pid int) (found []string) {
	t.Helper()
	own := make(map[string]bool)
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	must.NoError(t, err)
	for _, file := range files {
		target, _ := os.Readlink(file) // the process may have closed it
		own[target] = true
	}
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // the machine has no IPv6
		}
		must.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			columns := strings.Fields(line)
			const listen = "0A"
			if len(columns) < 10 || columns[3] != listen || !own["socket:["+columns[9]+"]"] {
				continue
			}
			ip, port, _ := strings.Cut(columns[1], ":")
			number, err := strconv.ParseUint(port, 16, 16)
			must.NoError(t, err)
			if ip == "0100007F" {
				ip = "127.0.0.1"
			}
			found = append(found, fmt.Sprintf("%s:%d", ip, number))
		}
	}
	return found
}

// running are the running allocations of a job by the names of their nodes.
func (d *trial) running(job string) map[string][]*api.AllocationListStub {
	byNode := make(map[string][]*api.AllocationListStub)
	list, _, err := d.api.Jobs().Allocations(job, false, nil)
	must.NoError(d.t, err)
	for _, a := range list {
		if a.ClientStatus == "running" && a.DesiredStatus == "run" {
			byNode[a.NodeName] = append(byNode[a.NodeName], a)
		}
	}
	return byNode
}

// One command runs real tasks. A drain moves those of a node. SIGTERM ends everything. It begins again,
// also after SIGKILL, and no process is left.
//
//race:skip its programs do not have the detector
func TestDev(t *testing.T) {
	t.Parallel()
	d := newTrial(t)
	d.begin()
	must.RegexMatch(t, regexp.MustCompile(`2 nodes, 7 tasks`), d.printed.String())
	// A user who could join the servers could run tasks with the rights of the driver, which may be
	// root's: there is no port for other servers.
	must.Eq(t, []string{d.address}, listeners(t, d.process.Process.Pid))
	for _, name := range []string{"token", "tokens"} {
		info, err := os.Stat(filepath.Join(d.dir, name))
		must.NoError(t, err)
		must.Eq(t, 0o600, info.Mode().Perm())
	}

	// A second one changes nothing, and its error names the first.
	first := strconv.Itoa(d.process.Process.Pid)
	out, err := d.command("-addr", d.address).CombinedOutput()
	must.Error(t, err)
	must.StrContains(t, string(out), d.dir+" is in use by the client with pid "+first)
	other := exec.Command(d.binary, "dev", "-dir", d.dir+"2", "-addr", d.address)
	out, err = other.CombinedOutput()
	must.Error(t, err)
	must.StrContains(t, string(out), "pid "+first+" ")
	_, err = os.Stat(d.dir + "2")
	must.ErrorIs(t, err, os.ErrNotExist)

	// A drain moves the tasks of a node.
	before := d.running("web")
	must.MapLen(t, 2, before)
	node := before["node-1"][0].NodeID
	_, err = d.api.Nodes().UpdateDrain(node, &api.DrainSpec{Deadline: patience, IgnoreSystemJobs: true}, false, nil)
	must.NoError(t, err)
	d.await("all of web on the other node", func() bool {
		now := d.running("web")
		return len(now["node-1"]) == 0 && len(now["node-2"]) == 4
	})
	d.end()

	for _, args := range [][]string{{}, {"-simulated"}} {
		d.begin(args...)
		must.NoError(t, d.process.Process.Signal(syscall.SIGKILL))
		_ = d.process.Wait() // the error is only that it was killed
		d.process = nil
		must.SliceNotEmpty(t, d.left(), must.Sprint("tasks run on"))
	}
	old := d.left()
	d.begin()
	present := d.left()
	for _, pid := range old {
		must.SliceNotContains(t, present, pid)
	}
	// After a second signal the tasks get no more time.
	must.NoError(t, d.process.Process.Signal(syscall.SIGTERM))
	d.await("the first signal", func() bool { return strings.Contains(d.printed.String(), "Ending all tasks.") })
	d.end()
}

// Simulated tasks have no processes, and move like others.
//
//race:skip its programs do not have the detector
func TestDev_simulated(t *testing.T) {
	t.Parallel()
	d := newTrial(t)
	d.begin("-simulated", "-nodes", "3")
	must.StrContains(t, d.printed.String(), "A cluster of simulated tasks: 1 server, 3 nodes, 7 tasks without processes")
	var node string
	for _, allocs := range d.running("web") {
		node = allocs[0].NodeID
	}
	_, err := d.api.Nodes().UpdateDrain(node, &api.DrainSpec{Deadline: patience, IgnoreSystemJobs: true}, false, nil)
	must.NoError(t, err)
	d.await("all of web on the other nodes", func() bool {
		count := 0
		for _, allocs := range d.running("web") {
			for _, a := range allocs {
				if a.NodeID == node {
					return false
				}
				count++
			}
		}
		return count == 4
	})
	d.end()
}

// A directory of others is refused, and stays as it is.
//
//race:skip its programs do not have the detector
func TestDev_foreignDirectory(t *testing.T) {
	t.Parallel()
	d := newTrial(t)
	must.NoError(t, os.Mkdir(d.dir, 0o700))
	file := filepath.Join(d.dir, "mine")
	must.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	out, err := d.command("-addr", d.address).CombinedOutput()
	must.Error(t, err)
	must.StrContains(t, string(out), fmt.Sprintf("%s is not empty", d.dir))
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	must.Eq(t, "text", string(text))
}
