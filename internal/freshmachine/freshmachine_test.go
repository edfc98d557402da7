package freshmachine_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
)

const (
	// variable is the environment variable of the package.
	variable = "NODEDRAIN_TEST_MACHINE"
	// folder is the environment variable with the folder on which TestPart mounts something, if any.
	folder = "NODEDRAIN_TEST_FOLDER"
	// part is the environment variable that selects a part of TestPart, or the double of the go
	// command.
	part = "NODEDRAIN_TEST_PART"
)

func TestMain(m *testing.M) {
	if os.Getenv(part) == "go" {
		if err := goCommand(); err != nil {
			panic(err)
		}
		return
	}
	freshmachine.Enter()
	m.Run()
}

// goCommand runs the test binary as the go command does.
func goCommand() error {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), part+"=leave")
	return cmd.Run()
}

// TestPart is what a run does that another test starts.
func TestPart(t *testing.T) {
	switch os.Getenv(part) {
	case "":
		t.Skip("only as a part of another test")
	case "pass":
	case "fail":
		t.Fatal("it fails")
	case "clock":
		var now unix.Timespec
		must.NoError(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now))
		must.Between(t, 0, now.Sec, 300, must.Sprint("seconds since the boot"))
	case "leave":
		// An orphan of another session without an environment, which ignores signals.
		orphan := exec.Command("/bin/sh", "-c", `trap "" HUP INT QUIT TERM; (setsid sleep 600 &) ; echo started`)
		orphan.Env, orphan.Stdout = []string{}, os.Stdout
		must.NoError(t, orphan.Run())
		if dir := os.Getenv(folder); dir != "" {
			must.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
		}
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

// run is a run of this test binary. out ends when no process has its standard output.
type run struct {
	*testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	err bytes.Buffer
}

// start starts TestPart. A run with namespaces mounts something on the folder dir.
func start(t *testing.T, mode, what, program, dir string) *run {
	t.Helper()
	if mode == "namespaces" && os.Getuid() != 0 {
		t.Skip("needs root: it creates namespaces")
	}
	r := &run{T: t, cmd: exec.Command(program, "-test.run=^TestPart$", "-test.v")}
	r.cmd.Env = append(os.Environ(), variable+"="+mode, part+"="+what)
	if mode == "namespaces" {
		r.cmd.Env = append(r.cmd.Env, folder+"="+dir)
	}
	out, in, err := os.Pipe()
	must.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })
	r.out, r.cmd.Stdout, r.cmd.Stderr = bufio.NewReader(out), in, &r.err
	hold, err := r.cmd.StdinPipe() // the run waits for it
	must.NoError(t, err)
	t.Cleanup(func() { _ = hold.Close() })
	must.NoError(t, r.cmd.Start())
	must.NoError(t, in.Close())
	return r
}

// awaitReady returns when the run has left something.
func (r *run) awaitReady() {
	r.Helper()
	for {
		line, err := r.out.ReadString('\n')
		must.NoError(r, err)
		if line == "ready\n" {
			return
		}
	}
}

// end waits for the end of all processes of the run.
func (r *run) end() (output string) {
	r.Helper()
	rest, err := io.ReadAll(r.out)
	must.NoError(r, err)
	_ = r.cmd.Wait() // its error is the state
	return string(rest)
}

// child returns the child of a process that is the supervisor or runs the tests.
func child(t *testing.T, pid int) int {
	t.Helper()
	var found []int
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	must.NoError(t, err)
	for _, file := range files {
		line, _ := os.ReadFile(file) // a process may have ended
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(args, []byte("-test.run=^TestPart$")) && fields(line)[1] == strconv.Itoa(pid) {
			n, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			must.NoError(t, err)
			found = append(found, n)
		}
	}
	must.Len(t, 1, found)
	return found[0]
}

// fields returns the fields of a stat file after the name, from field 3 on.
func fields(stat []byte) []string {
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// Bug: the processes and mounts of a killed test run stayed, until an operator removed them by hand.
func TestEnter_killed(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"namespaces", "shared"} {
		for _, killed := range []string{"launcher", "supervisor", "tests", "go"} {
			t.Run(mode+"/"+killed, func(t *testing.T) {
				t.Parallel()
				program, what, dir := os.Args[0], "leave", t.TempDir()
				if killed == "go" {
					program, what = filepath.Join(t.TempDir(), "go"), "go"
					must.NoError(t, os.Symlink("/proc/self/exe", program))
				}
				r := start(t, mode, what, program, dir)
				r.awaitReady()
				pid := r.cmd.Process.Pid
				for _, name := range []string{"launcher", "supervisor", "tests"} {
					if killed == name || killed == "go" {
						break
					}
					pid = child(t, pid)
				}
				must.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				r.end()
				tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
				must.NoError(t, err)
				for _, table := range tables {
					mounts, _ := os.ReadFile(table) // its process may have ended
					must.StrNotContains(t, string(mounts), dir)
				}
			})
		}
	}
}

func TestEnter_exitCode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"namespaces", "shared", "off"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pass := start(t, mode, "pass", os.Args[0], "")
			must.StrContains(t, pass.end(), "PASS: TestPart")
			must.Eq(t, 0, pass.cmd.ProcessState.ExitCode())
			fail := start(t, mode, "fail", os.Args[0], "")
			must.StrContains(t, fail.end(), "it fails")
			must.Eq(t, 1, fail.cmd.ProcessState.ExitCode())
		})
	}
}

// The go command sends SIGQUIT to a test binary that takes too long, to see its goroutines.
func TestEnter_signals(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"namespaces", "shared"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			quit := start(t, mode, "leave", os.Args[0], t.TempDir())
			quit.awaitReady()
			must.NoError(t, quit.cmd.Process.Signal(syscall.SIGQUIT))
			quit.end()
			must.Eq(t, 2, quit.cmd.ProcessState.ExitCode())
			must.StrContains(t, quit.err.String(), "freshmachine_test.TestPart")

			terminated := start(t, mode, "leave", os.Args[0], t.TempDir())
			terminated.awaitReady()
			must.NoError(t, terminated.cmd.Process.Signal(syscall.SIGTERM))
			terminated.end()
			must.Eq(t, 128+int(syscall.SIGTERM), terminated.cmd.ProcessState.ExitCode())
		})
	}
}

// The supervisor starts before it sets the clock of its children.
func TestEnter_freshMachine(t *testing.T) {
	t.Parallel()
	if os.Getppid() != 1 {
		t.Skip("these tests run on the machine of the caller")
	}
	stat, err := os.ReadFile("/proc/1/stat")
	must.NoError(t, err)
	ticks, err := strconv.ParseUint(fields(stat)[22-3], 10, 64)
	must.NoError(t, err)
	must.Less(t, 3*100, int64(ticks), must.Sprint("hundredths of a second since the boot"))
	must.Less(t, 100, os.Getpid())
}

// Bug: in a time namespace the tests ran with the boot clock of the machine. This test has such a
// namespace unless it runs on the machine of the caller.
func TestEnter_twice(t *testing.T) {
	t.Parallel()
	second := start(t, "namespaces", "clock", os.Args[0], "")
	output := second.end()
	must.Eq(t, 0, second.cmd.ProcessState.ExitCode(), must.Sprint(output))
}
