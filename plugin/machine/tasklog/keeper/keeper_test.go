package keeper_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

// role is the environment variable that makes this test binary another program.
const role = "NODEDRAIN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "keeper":
		os.Exit(keeper.Main(os.Args[1:], os.Stdout, os.Stderr))
	case "client": // starts a keeper and is killed
		_, err := keeper.Start(context.Background(), command(), keeper.Config{Logs: os.Args[1], Task: os.Args[2]})
		fmt.Println(err)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "":
		freshmachine.Enter()
		m.Run()
	}
}

func command() keeper.Command {
	return keeper.Command{Path: os.Args[0], Env: []string{role + "=keeper"}}
}

// node is a node with one task.
type node struct {
	*testing.T
	config keeper.Config
}

func newNode(t *testing.T) *node {
	n := &node{t, keeper.Config{Logs: t.TempDir(), Task: "web"}}
	t.Cleanup(func() { // No keeper outlives its test.
		if k := n.find(); k != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			must.NoError(t, k.Stop(ctx))
		}
	})
	return n
}

func (n *node) start() *keeper.Keeper {
	n.Helper()
	k, err := keeper.Start(n.Context(), command(), n.config)
	must.NoError(n, err)
	return k
}

func (n *node) find() *keeper.Keeper {
	n.Helper()
	k, err := keeper.Find(n.config)
	must.NoError(n, err)
	return k
}

func (n *node) stop(k *keeper.Keeper) {
	n.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.NoError(n, k.Stop(ctx))
}

// task starts a shell with its output on the FIFOs.
func (n *node) task(script string) *exec.Cmd {
	n.Helper()
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("exec >'%s' 2>'%s'; %s", n.config.FIFO("stdout"), n.config.FIFO("stderr"), script))
	must.NoError(n, cmd.Start())
	return cmd
}

// log returns the whole log of a stream.
func (n *node) log(stream string) string {
	n.Helper()
	paths, err := filepath.Glob(filepath.Join(n.config.Logs, "web."+stream+".*"))
	must.NoError(n, err)
	slices.SortFunc(paths, func(a, b string) int { return number(a) - number(b) })
	var all bytes.Buffer
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // a rotation deleted it
		}
		must.NoError(n, err)
		all.Write(content)
	}
	return all.String()
}

func number(path string) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(path), "."))
	return i
}

// A task prints through restarts of its client, and all of it is in the log.
func TestKeeper_OutlivesItsClient(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	client := exec.Command(os.Args[0], n.config.Logs, n.config.Task)
	client.Env = []string{role + "=client"}
	printed, err := client.Output()
	must.ErrorContains(t, err, "killed")
	must.Eq(t, "<nil>\n", string(printed))

	task := n.task("i=0; while [ $i -lt 2000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done")
	first := n.find()
	must.NotNil(t, first)
	for range 20 { // clients that come and go
		k := n.start()
		must.Eq(t, first.ID, k.ID)
		k.Close()
	}
	must.NoError(t, task.Wait())
	n.stop(first)
	must.Nil(t, n.find())
	for stream, word := range map[string]string{"stdout": "out", "stderr": "err"} {
		lines := strings.Split(strings.TrimSpace(n.log(stream)), "\n")
		must.Len(t, 2000, lines)
		for i, line := range lines {
			must.Eq(t, fmt.Sprintf("%s %d", word, i), line)
		}
	}
	info, err := os.Stat(n.config.FIFO("stdout"))
	must.NoError(t, err)
	must.Eq(t, os.ModeNamedPipe|0o600, info.Mode())
}

// While a client lives, the task outlives its keeper, and no line is lost: the next keeper finds in
// the FIFO what the killed one had not written. Lines may be in the log twice.
func TestKeeper_Killed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.config.Limits = tasklog.Limits{MaxFiles: 1000, MaxFileSize: 1024} // many rotations
	k := n.start()
	kills := 0
	for round := range 5 {
		// Less than half of what the FIFO holds: the keeper never takes a line before it is written.
		const lines = 2000
		task := n.task(fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line %d $i; i=$((i+1)); done; echo end %d", lines, round, round))
		for !strings.Contains(n.log("stdout"), fmt.Sprintf("end %d\n", round)) {
			must.NoError(t, syscall.Kill(k.ID.PID, syscall.SIGKILL))
			must.NoError(t, k.Wait(t.Context()))
			next := n.start()
			must.NotEq(t, k.ID, next.ID)
			k.Close()
			k = next
			kills++
		}
		must.NoError(t, task.Wait()) // not killed by SIGPIPE
		got := map[string]bool{}
		for line := range strings.Lines(n.log("stdout")) {
			got[line] = true
		}
		for i := range lines {
			line := fmt.Sprintf("line %d %d\n", round, i)
			must.True(t, got[line], must.Sprintf("%q is lost", line))
		}
	}
	n.stop(k)
	t.Logf("%d kills", kills)
}

// A process that left its task goes on printing. The end of the keeper is bounded. (NP-T5)
func TestKeeper_StopWhileAStrangerPrints(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.config.Limits = tasklog.Limits{MaxFiles: 2, MaxFileSize: 1 << 20}
	k := n.start()
	stranger := n.task("exec yes")
	n.waitForLog("stdout", "y\n")
	n.stop(k)
	must.Error(t, stranger.Wait()) // of SIGPIPE: nothing reads any longer
}

// waitForLog waits until a log has a text.
func (n *node) waitForLog(stream, text string) {
	n.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !strings.Contains(n.log(stream), text) {
		select {
		case <-ticker.C:
		case <-n.Context().Done():
			n.Fatalf("the log never has %q", text)
		}
	}
}

// A keeper that does not end is killed.
func TestKeeper_StopOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	k := n.start()
	frozen.Stop(t, k.ID.PID)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := k.Stop(ctx)
	must.ErrorIs(t, err, context.DeadlineExceeded)
	must.ErrorContains(t, err, "was killed")
}

// No keeper, no task: what prevents the start is in the error, and no process is left. (NP-T2)
func TestStart_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(n *node, command *keeper.Command)
		expected string
	}{
		"no folder": {
			func(n *node, _ *keeper.Command) { n.config.Logs += "/missing" }, "no such file",
		},
		"a relative folder": {
			func(n *node, _ *keeper.Command) { n.config.Logs = "logs" }, "absolute path",
		},
		"a task name with a slash": {
			func(n *node, _ *keeper.Command) { n.config.Task = "a/b" }, "not a path element",
		},
		"bad limits": {
			func(n *node, _ *keeper.Command) { n.config.Limits.MaxFiles = -1 }, "at least one file",
		},
		"a file in the place of a FIFO": {
			func(n *node, _ *keeper.Command) {
				must.NoError(n, os.WriteFile(n.config.FIFO("stderr"), nil, 0o600))
			}, "not a FIFO",
		},
		"a link in the place of a FIFO": {
			func(n *node, _ *keeper.Command) { must.NoError(n, os.Symlink("/dev/null", n.config.FIFO("stderr"))) }, "symbolic links",
		},
		"no program": {
			func(_ *node, command *keeper.Command) { command.Path = "/missing" }, "no such file",
		},
		"a program that ends": {
			func(_ *node, command *keeper.Command) { command.Path = "/bin/true" }, "did not report that it is ready",
		},
		"a program that reports something else": {
			func(_ *node, command *keeper.Command) { command.Path = "/bin/echo" }, "did not report that it is ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &node{t, keeper.Config{Logs: t.TempDir(), Task: "web"}}
			command := command()
			c.change(n, &command)
			k, err := keeper.Start(t.Context(), command, n.config)
			must.Nil(t, k)
			must.ErrorContains(t, err, c.expected)
			if _, err := os.Stat(n.config.Logs); err == nil {
				must.Nil(t, n.find())
			}
		})
	}
}

// A program that never becomes ready is killed at the end of the context.
func TestStart_NeverReady(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := keeper.Start(ctx, keeper.Command{Path: "/bin/sh", Args: []string{"-c", "exec sleep 3600"}}, n.config)
	must.ErrorIs(t, err, context.DeadlineExceeded)
}

// A program that is no keeper is killed, also when it writes no whole line.
func TestStart_OtherProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, expected string }{
		"it closes its output":     {"exec >&-", "did not report that it is ready"},
		"a line without an end":    {"head -c 4096 /dev/zero", "did not report that it is ready"},
		"an error":                 {"echo error no disk", "no disk"},
		"a line of another kind":   {"echo hello", `it did not report that it is ready: "hello\n"`},
		"a protocol that is later": {"echo ready 2", `"ready 2\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			pid := filepath.Join(t.TempDir(), "pid")
			_, err := keeper.Start(t.Context(), keeper.Command{
				Path: "/bin/sh", Args: []string{"-c", "echo $$ >'" + pid + "'; " + c.output + "; exec sleep 3600 >/dev/null"},
				Env: []string{"PATH=/usr/bin:/bin"},
			}, n.config)
			must.ErrorContains(t, err, c.expected)
			text, err := os.ReadFile(pid)
			must.NoError(t, err)
			number, err := strconv.Atoi(strings.TrimSpace(string(text)))
			must.NoError(t, err)
			id, err := process.Identify(number)
			if errors.Is(err, process.ErrGone) {
				return
			}
			must.NoError(t, err)
			p, err := process.Open(id)
			if errors.Is(err, process.ErrGone) {
				return
			}
			must.NoError(t, err)
			defer p.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := p.Wait(ctx); err != nil {
				_ = p.Signal(syscall.SIGKILL)
				t.Error("the program lives:", err)
			}
		})
	}
}

// A keeper refuses a later protocol, also when it has unknown flags.
func TestMain_LaterProtocol(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-protocol", "2", "-colour", "red"}, {"-protocol", "2"}, {}, {"-protocol", "x"}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = command().Env
		out, err := cmd.Output()
		must.Error(t, err)
		must.StrHasPrefix(t, "error this log keeper speaks protocol 1, not ", string(out))
	}
}

// A second keeper for a task is refused.
func TestMain_SecondKeeper(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	k := n.start()
	defer k.Close()
	cmd := exec.Command(os.Args[0], "-protocol", "1", "-logs", n.config.Logs, "-task", "web")
	cmd.Env = command().Env
	out, err := cmd.Output()
	must.Error(t, err)
	must.StrContains(t, string(out), "another log keeper serves task web")
}

// An identity that belongs to another process is not signalled.
func TestFind_ReusedPID(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	path := filepath.Join(n.config.Logs, ".web.keeper")
	must.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"boot":"x","pid":%d,"start":1}`, os.Getpid()), 0o600))
	must.Nil(t, n.find()) // no lock, no keeper
	file, err := os.Open(path)
	must.NoError(t, err)
	defer file.Close()
	must.NoError(t, unix.Flock(int(file.Fd()), unix.LOCK_EX))
	must.Nil(t, n.find()) // locked, but the process with this pid is another one
	must.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = keeper.Find(n.config)
	must.ErrorContains(t, err, "retry")
}

// The disk is full: the task runs to its end, what was dropped is counted, and lines return when there
// is room. (NP-T1)
func TestKeeper_FullDisk(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	tmpfs.Mount(t, n.config.Logs, "size=1m")
	k := n.start()
	filler := filepath.Join(n.config.Logs, "filler")
	must.ErrorIs(t, os.WriteFile(filler, make([]byte, 2<<20), 0o600), syscall.ENOSPC)
	task := n.task("i=0; while [ $i -lt 60000 ]; do echo a line that is not short, number $i; i=$((i+1)); done")
	must.NoError(t, task.Wait())
	must.NoError(t, os.Remove(filler))
	task = n.task("echo there is room")
	must.NoError(t, task.Wait())
	n.waitForLog("stdout", "of this log were dropped: no space left on device\n")
	n.stop(k)
	// Every line is there, or in the count.
	lines := strings.Split(strings.TrimSuffix(n.log("stdout"), "\n"), "\n")
	kept, dropped := 0, 0
	for _, line := range lines {
		var count int
		if _, err := fmt.Sscanf(line, "nodedrain: %d lines", &count); err == nil {
			dropped += count
			continue
		}
		kept++
	}
	must.Eq(t, 60_001, kept+dropped)
	must.Greater(t, 0, dropped)
}

// A keeper of a busy task has less than 4 MiB of memory of its own. (NP-T4)
func TestKeeper_Memory(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.config.Limits = tasklog.Limits{MaxFiles: 2, MaxFileSize: 1 << 20}
	k := n.start()
	task := n.task("head -c 5000000 /dev/urandom | base64 >&2; yes 0123456789 | head -c 20000000")
	must.NoError(t, task.Wait())
	private := anonymous(t, k.ID.PID)
	n.stop(k)
	t.Logf("%d KiB", private)
	if !raceDetector {
		must.LessEq(t, 4096, private)
	}
}

// anonymous returns the memory of a process that it shares with none, in KiB. Pages of the program
// file do not count: the client has them too.
func anonymous(t *testing.T, pid int) int {
	t.Helper()
	rollup, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	must.NoError(t, err)
	defer rollup.Close()
	for lines := bufio.NewScanner(rollup); lines.Scan(); {
		var kib int
		if _, err := fmt.Sscanf(lines.Text(), "Anonymous: %d kB", &kib); err == nil {
			return kib
		}
	}
	t.Fatal("smaps_rollup has no line Anonymous")
	return 0
}

// Starts and stops leave no file open. The goroutines that reap have a process open for some time
// after its end, so the test waits. One file for each start would be 20 files too many.
func TestKeeper_LeavesNothingOpen(t *testing.T) {
	n := newNode(t)
	n.stop(n.start())
	before := openFiles(t)
	for range 20 {
		n.stop(n.start())
	}
	few := func() bool { return openFiles(t) <= before+2 }
	must.Wait(t, wait.InitialSuccess(wait.BoolFunc(few), wait.Timeout(time.Minute), wait.Gap(10*time.Millisecond)))
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must.NoError(t, err)
	return len(entries)
}

// The folder of the logs is deleted, and with it the lock and the identity of the keeper. Its arguments still
// name it. The keeper of another task, and that of another folder, continue.
func TestEndLost(t *testing.T) {
	t.Parallel()
	n, other := newNode(t), newNode(t)
	k, stays := n.start(), other.start()
	defer stays.Close()
	second := n.config
	second.Task = "log"
	sibling, err := keeper.Start(t.Context(), command(), second)
	must.NoError(t, err)
	must.NoError(t, os.RemoveAll(n.config.Logs))
	t.Cleanup(func() { must.NoError(t, os.MkdirAll(n.config.Logs, 0o700)) })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must.NoError(t, keeper.EndLost(ctx, n.config))
	must.NoError(t, k.Wait(ctx))
	for _, lives := range []*keeper.Keeper{stays, sibling} {
		alive, err := lives.ID.Alive()
		must.NoError(t, err)
		must.True(t, alive)
	}
	must.NoError(t, keeper.EndLost(ctx, n.config), must.Sprint("nothing is left"))
	must.NoError(t, sibling.Stop(ctx))
	k.Close()
}
