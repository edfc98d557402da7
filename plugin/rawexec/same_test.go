package rawexec_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// otherInExec are the fields of /proc/PID/status in which a command differs from its task: process ids, and
// what the kernel counts.
var otherInExec = []string{
	"State", "Tgid", "Ngid", "Pid", "PPid", "NStgid", "NSpid", "NSpgid", "NSsid", "FDSize", "SigQ",
	"VmPeak", "VmSize", "VmLck", "VmPin", "VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem", "VmData", "VmStk", "VmExe", "VmLib", "VmPTE", "VmSwap",
	"HugetlbPages", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches",
}

// A command runs like its task: with the same user, all groups, rights, signals, limits, control group,
// namespaces, environment and folders, and with no other open file. Bug: it had no supplementary groups.
func TestExec_likeTheTask(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.groups = filepath.Join(n.dir, "group")
	must.NoError(t, os.WriteFile(n.groups, []byte("bin:x:2:\nfiles:x:4711:bin\nmore:x:4712:bin\n"), 0o644))
	for dir := n.dir; dir != "/"; dir = filepath.Dir(dir) { // the folder of the test must not block other users
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o5 != 0o5 {
			must.NoError(t, os.Chmod(dir, info.Mode().Perm()|0o755))
		}
	}
	p := n.launch()
	for _, tt := range []struct {
		user string
		tty  bool
	}{{"", false}, {"", true}, {"bin", false}, {"bin", true}} {
		c := n.task("echo ready; exec sleep 600")
		c.User = tt.user
		n.start(p, c)
		task := n.living(1)[0]
		ctx, leave := context.WithCancel(t.Context())
		stream, err := p.ExecTaskStreaming(ctx)
		must.NoError(t, err)
		must.NoError(t, stream.Send(&pb.ExecTaskStreamingRequest{Setup: &pb.ExecTaskStreamingRequest_Setup{
			TaskId: c.GetId(), Command: []string{"/bin/sh", "-c", "echo ready; exec sleep 600"}, Tty: tt.tty,
		}}))
		var both []int
		n.until(func() bool {
			both = n.processes()
			return len(both) == 2 && !slices.ContainsFunc(both, func(pid int) bool { return !asleep(pid) })
		})
		command := both[0] + both[1] - task
		must.Eq(t, factsOf(t, task), factsOf(t, command), must.Sprintf("user %q, terminal %t", tt.user, tt.tty))
		if tt.user == "bin" {
			must.StrContains(t, factsOf(t, command)["status Groups"], "4711 4712")
		}
		leave()
		n.destroy(p, c)
	}
	n.empty()
}

// asleep reports whether a process is a sleep that has begun. Before that it has files of its libraries open.
func asleep(pid int) bool {
	status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status")) // it may have ended
	return strings.HasPrefix(string(status), "Name:\tsleep\n") && strings.Contains(string(status), "\nState:\tS")
}

// factsOf returns what a process has from the process that has started it.
func factsOf(t *testing.T, pid int) map[string]string {
	t.Helper()
	proc, facts := filepath.Join("/proc", strconv.Itoa(pid)), make(map[string]string)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(proc, name))
		must.NoError(t, err)
		return string(text)
	}
	for line := range strings.Lines(read("status")) {
		if key, value, _ := strings.Cut(line, ":"); !slices.Contains(otherInExec, key) {
			facts["status "+key] = strings.TrimSpace(value)
		}
	}
	for _, name := range []string{"limits", "cgroup", "environ", "oom_score_adj", "coredump_filter", "personality"} {
		facts[name] = read(name)
	}
	link := func(name string) {
		target, err := os.Readlink(filepath.Join(proc, name))
		must.NoError(t, err)
		facts[name] = target
	}
	link("cwd")
	link("root")
	for _, folder := range []string{"ns", "fd"} {
		entries, err := os.ReadDir(filepath.Join(proc, folder))
		must.NoError(t, err)
		for _, e := range entries {
			facts[folder] += e.Name() + " "
			if folder == "ns" {
				link("ns/" + e.Name())
			}
		}
	}
	stat := read("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // from the third on
	facts["priority, nice"] = strings.Join(fields[15:17], " ")
	facts["realtime priority, policy"] = strings.Join(fields[37:39], " ")
	return facts
}
