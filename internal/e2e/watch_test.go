package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
)

// Every server is restarted while the command watches a drain: the first and the last one are stopped, the
// second one is killed. With three addresses, all of them then fall silent. The watch continues, as it does
// behind one address that balances connections. It ends with 0 and the outcome of the record.
//
//race:skip the same goroutines as TestServersInTrouble
func TestRollingRestart_watchedDrain(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "nodedrain")
	programs.Build(t, "../../cmd/nodedrain", binary)
	for name, addresses := range map[string]func(*servers) string{
		"three addresses": func(s *servers) string { return strings.Join(s.urls(), ",") },
		"one address":     balance,
	} {
		t.Run(name, func(t *testing.T) {
			s := startServers(t, time.Minute)
			clients := s.startClients(3)
			s.registerJobs(3)
			s.allRun("web", 6)
			node := s.registerHeld()

			w := startWatch(s, binary, addresses(s), node)
			s.await("the reason that holds the drain", func() bool { return strings.Contains(w.out.String(), "Waiting: 1 of default/held.main") })
			for i, p := range s.all {
				s.leader()
				if i == 1 {
					s.kill(p)
				} else {
					s.end(p)
				}
				s.start(p)
				s.await(p.Name+" to report a leader", func() bool {
					address, err := p.api.Status().Leader()
					return err == nil && address != ""
				})
			}
			if name == "three addresses" {
				freezeAll(s, func() {
					s.await("the command to try every server", func() bool { return strings.Contains(w.errs.String(), ": no server answers") })
				})
				must.StrContains(t, w.errs.String(), ": connection lost, trying ")
				s.await("the command to continue", func() bool { return strings.Contains(w.errs.String(), ": a server answers again") })
			}

			s.leader()
			must.NoError(t, s.do(t.Context(), func(c *api.Client) error {
				_, err := c.Nodes().UpdateDrainOpts(node, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -1}}, nil)
				return err
			}))
			must.NoError(t, w.wait(), must.Sprint(w.errs.String()))
			out := w.out.String()
			must.StrContains(t, out, ": Drain complete for node "+node+"\n")
			must.StrContains(t, out, ": Outcome: forced")
			must.StrContains(t, out, fmt.Sprintf(": All allocations on node %q have stopped\n", node))
			records := s.records()
			must.SliceLen(t, 1, records)
			must.Eq(t, "forced", records[0].Outcome)
			must.Eq(t, node, records[0].NodeID)
			s.neverMissed(node)
			clients.stop()
			t.Logf("the command printed:\n%s%s", out, w.errs.String())
		})
	}
}

// registerHeld registers a job that does not move before a deadline, and returns its node.
func (s *servers) registerHeld() (node string) {
	s.t.Helper()
	id, kind, none, cpu, memory := "held", "service", 0, 100, 64
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	group := api.NewTaskGroup("main", 1)
	group.Migrate = &api.MigrateStrategy{MaxParallel: &none}
	job.AddTaskGroup(group.AddTask(api.NewTask("main", "mock").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})))
	must.NoError(s.t, s.do(s.t.Context(), func(c *api.Client) error {
		_, _, err := c.Jobs().Register(job, nil)
		return err
	}))
	s.await("the held allocation", func() bool {
		allocs, _, err := s.all[0].api.Jobs().Allocations(id, false, nil)
		for _, a := range allocs {
			if a.ClientStatus == "running" {
				node = a.NodeID
			}
		}
		return err == nil && node != ""
	})
	return node
}

// watch is a running command that watches a drain.
type watch struct {
	command   *exec.Cmd
	out, errs output
}

// output is the output of a process, which a test reads meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startWatch starts a drain without a deadline and watches it.
func startWatch(s *servers, binary, addresses, node string) *watch {
	s.t.Helper()
	w := &watch{command: exec.CommandContext(s.t.Context(), binary, "node", "drain", "-enable", "-yes", "-no-deadline", "-address", addresses, node)}
	w.command.Stdout, w.command.Stderr = &w.out, &w.errs
	must.NoError(s.t, w.command.Start())
	return w
}

// wait waits for the end of the command. The error is nil if its exit code is 0.
func (w *watch) wait() error {
	end := time.AfterFunc(patience, func() { _ = w.command.Process.Kill() })
	defer end.Stop()
	return w.command.Wait()
}

// freezeAll pauses all servers.
func freezeAll(s *servers, while func()) {
	s.t.Helper()
	for _, p := range s.all {
		next := while
		while = func() { s.freeze(p, next) }
	}
	while()
}

// balance returns the address of a balancer: each connection goes to the next server that runs.
func balance(s *servers) (address string) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(s.t, err)
	var addresses []string
	for _, p := range s.all {
		addresses = append(addresses, p.HTTPAddr)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for next := 0; ; next++ {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { balanced(from, addresses, next) })
		}
	})
	s.t.Cleanup(func() {
		_ = l.Close()
		running.Wait() // the command and the servers have ended: so have the connections
	})
	return "http://" + l.Addr().String()
}

// balanced connects a connection to the first of the addresses that answers, from the nth on.
func balanced(from net.Conn, addresses []string, n int) {
	defer func() { _ = from.Close() }()
	for i := range addresses {
		to, err := net.Dial("tcp", addresses[(n+i)%len(addresses)])
		if err != nil {
			continue
		}
		defer func() { _ = to.Close() }()
		var copying sync.WaitGroup
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			copying.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // one end has gone: both connections end
				_ = from.Close()
				_ = to.Close()
			})
		}
		copying.Wait()
		return
	}
}
