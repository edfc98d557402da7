package e2e

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"
)

// talks prints a greeting and then lines. It prints a line when it gets SIGHUP or SIGTERM.
const talks = `trap 'echo hup' HUP; trap 'echo bye; sleep 0.3; exit 5' TERM; echo "hello $GREETING"; i=0; while :; do i=$((i+1)); echo "line $i"; sleep 0.1; done`

// talker registers a job whose task talks, and returns its allocation.
func (s *site) talker(id string) *api.Allocation {
	s.t.Helper()
	kind, cpu, memory, grace, one, quick, long := "service", 100, 64, 3*time.Second, 1, 100*time.Millisecond, time.Minute
	task := api.NewTask("main", "raw_exec").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
	task.KillSignal, task.KillTimeout, task.Env = "SIGTERM", &grace, map[string]string{"GREETING": "people"}
	task.Config = map[string]any{"command": "/bin/sh", "args": []string{"-c", talks}}
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	group := api.NewTaskGroup("g", 1).AddTask(task)
	group.Migrate = &api.MigrateStrategy{MaxParallel: &one, MinHealthyTime: &quick, HealthyDeadline: &long}
	_, _, err := s.api.Jobs().Register(job.AddTaskGroup(group), nil)
	must.NoError(s.t, err)
	return s.runningTask(id)
}

// runningTask waits for the one running allocation of a job.
func (s *site) runningTask(job string) (alloc *api.Allocation) {
	s.t.Helper()
	s.await("the allocation of "+job, func() bool {
		for _, stub := range s.allocs(job) {
			a, _, err := s.api.Allocations().Info(stub.ID, nil)
			if err == nil && a.DesiredStatus == "run" && a.TaskStates["main"] != nil && a.TaskStates["main"].State == "running" {
				alloc = a
				return true
			}
		}
		return false
	})
	return alloc
}

// follower reads a log until its end.
type follower struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	// ended is closed at the end; err is set before.
	ended chan struct{}
	err   error
}

func (s *site) follow(alloc *api.Allocation) *follower {
	frames, errs := s.api.AllocFS().Logs(alloc, true, "main", "stdout", "start", 0, s.t.Context().Done(), nil)
	f := &follower{ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for {
			select {
			case frame, open := <-frames:
				if !open {
					return
				}
				f.mu.Lock()
				f.text.Write(frame.Data)
				f.mu.Unlock()
			case f.err = <-errs:
				return
			}
		}
	}()
	return f
}

func (f *follower) read() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

func (s *site) run(alloc *api.Allocation, tty bool, in io.Reader, sizes <-chan api.TerminalSize, command ...string) (code int, stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code, err = s.api.Allocations().Exec(ctx, alloc, "main", tty, command, in, &out, &errs, sizes, nil)
	return code, out.String(), errs.String(), err
}

// An unmodified client of the compatible API registers a job, reads the task's files, logs and statistics,
// acts on it, drains its node and purges the job.
//
//race:skip its programs do not have the detector
func TestPeople_apiClient(t *testing.T) {
	t.Parallel()
	s := startSite(t, 2, true)
	alloc := s.talker("talk")
	logs := s.follow(alloc)
	s.await("lines of the log", func() bool { return strings.Contains(logs.read(), "line 3\n") })
	must.StrHasPrefix(t, "hello people\nline 1\n", logs.read())

	code, out, errs, err := s.run(alloc, false, strings.NewReader("some input\n"), nil, "/bin/sh", "-c", "cat; echo $GREETING $NOMAD_TASK_NAME >&2; exit 3")
	must.NoError(t, err)
	must.Eq(t, 3, code)
	must.Eq(t, "some input\n", out)
	must.Eq(t, "people main\n", errs)
	sizes := make(chan api.TerminalSize, 1)
	sizes <- api.TerminalSize{Height: 33, Width: 99}
	code, out, _, err = s.run(alloc, true, strings.NewReader(""), sizes, "/bin/sh", "-c", "while [ \"$(stty size)\" != '33 99' ]; do sleep 0.01; done; stty size")
	must.NoError(t, err)
	must.Zero(t, code)
	must.StrContains(t, out, "33 99")
	code, _, errs, err = s.run(alloc, false, strings.NewReader(""), nil, "/does/not/exist")
	must.NoError(t, err)
	must.Eq(t, 255, code)
	must.StrContains(t, errs, "/does/not/exist")

	s.readFiles(alloc)
	must.NoError(t, s.api.Allocations().Signal(alloc, nil, "main", "SIGHUP"))
	s.await("the answer to SIGHUP", func() bool { return strings.Contains(logs.read(), "\nhup\n") })
	must.Error(t, s.api.Allocations().Signal(alloc, nil, "main", "SIGNONE"))
	must.NoError(t, s.api.Allocations().Restart(alloc, "main", nil))
	s.await("the restarted task", func() bool { return strings.Count(logs.read(), "hello people\n") == 2 })

	stopped, err := s.api.Allocations().Stop(alloc, nil)
	must.NoError(t, err)
	must.NotEq(t, "", stopped.EvalID)
	s.await("the end of the log", func() bool { return ended(logs) })
	must.NoError(t, logs.err)
	must.StrHasSuffix(t, "bye\n", logs.read())
	s.await("another allocation", func() bool { return s.runningTask("talk").ID != alloc.ID })

	s.stopJob("talk")
	_, _, err = s.api.Jobs().Deregister("talk", true, nil)
	must.NoError(t, err)
	_, _, err = s.api.Jobs().Info("talk", nil)
	must.ErrorContains(t, err, "404")
}

func (s *site) readFiles(alloc *api.Allocation) {
	s.t.Helper()
	list, _, err := s.api.AllocFS().List(alloc, "/", nil)
	must.NoError(s.t, err)
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	must.SliceContainsAll(s.t, names, []string{"alloc", "main"})
	file, err := s.api.AllocFS().Cat(alloc, "alloc/logs/main.stdout.0", nil)
	must.NoError(s.t, err)
	text, err := io.ReadAll(file)
	must.NoError(s.t, err)
	must.NoError(s.t, file.Close())
	must.StrHasPrefix(s.t, "hello people\n", string(text))
	_, _, err = s.api.AllocFS().List(alloc, "main/secrets", nil)
	must.Error(s.t, err)
	_, err = s.api.AllocFS().Cat(alloc, "../../identity", nil)
	must.Error(s.t, err)

	usage, err := s.api.Allocations().Stats(alloc, nil)
	must.NoError(s.t, err)
	must.Positive(s.t, usage.ResourceUsage.MemoryStats.RSS)
	host, err := s.api.Nodes().Stats(alloc.NodeID, nil)
	must.NoError(s.t, err)
	must.Positive(s.t, host.Memory.Total)
}

func ended(f *follower) bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// A node is drained while its tasks are watched. Every follower gets the last line, every command ends,
// and the exit code of the task arrives.
//
//race:skip its programs do not have the detector
func TestPeople_watchedDrain(t *testing.T) {
	t.Parallel()
	s := startSite(t, 2, true)
	alloc := s.talker("talk")
	var followers []*follower
	for range 10 {
		followers = append(followers, s.follow(alloc))
	}
	type result struct {
		code int
		err  error
	}
	commands := make(chan result, 3)
	for range cap(commands) {
		in, end := io.Pipe() // without input
		defer end.Close()
		go func() {
			code, _, _, err := s.run(alloc, false, in, nil, "/bin/sh", "-c", "trap '' TERM HUP INT; while :; do sleep 0.1; done")
			commands <- result{code, err}
		}()
	}
	for _, f := range followers {
		s.await("lines of the log", func() bool { return strings.Contains(f.read(), "line 3\n") })
	}
	_, err := s.api.Nodes().UpdateDrainOpts(alloc.NodeID, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: time.Minute}}, nil)
	must.NoError(t, err)
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(alloc.NodeID, nil)
		return err == nil && n.DrainStrategy == nil
	})
	for _, f := range followers {
		s.await("the end of the log", func() bool { return ended(f) })
		must.NoError(t, f.err)
		must.StrHasSuffix(t, "bye\n", f.read())
	}
	for range cap(commands) {
		one := <-commands
		must.True(t, one.err != nil || one.code != 0, must.Sprint("a command that was killed did not succeed"))
	}
	after, _, err := s.api.Allocations().Info(alloc.ID, nil)
	must.NoError(t, err)
	must.Eq(t, "complete", after.ClientStatus)
	events := ""
	for _, e := range after.TaskStates["main"].Events {
		events += e.DisplayMessage + "\n"
	}
	must.StrContains(t, events, "Exit Code: 5")
	must.NotEq(t, alloc.NodeID, s.runningTask("talk").NodeID)
	s.stopJob("talk")
}
