package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/client/checks/probe"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/taskenv"
)

// checkRuns are the runs of checks in flight.
type checkRuns struct {
	mu   sync.Mutex
	ends map[checkRun]context.CancelFunc // guarded by mu
}

// checkRun identifies a run.
type checkRun struct {
	alloc  cluster.AllocID
	number uint64
}

// begin returns the context of a run. The caller calls over after its end.
func (c *checkRuns) begin(ctx context.Context, run checkRun) (running context.Context, over func()) {
	running, end := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = map[checkRun]context.CancelFunc{}
	}
	c.ends[run] = end
	return running, func() {
		end()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, run)
	}
}

// Check implements [client.Shell].
func (s *shell) Check(run client.CheckRun, reply func(checks.Result)) {
	ctx, over := s.checks.begin(s.life, checkRun{run.Alloc.ID, run.Number})
	s.running.Go(func() {
		result := s.check(ctx, run)
		over()
		reply(result)
	})
}

// EndCheck implements [client.Shell].
func (s *shell) EndCheck(alloc cluster.AllocID, run uint64) {
	s.checks.mu.Lock()
	defer s.checks.mu.Unlock()
	if end := s.checks.ends[checkRun{alloc, run}]; end != nil {
		end()
	}
}

// check executes a run. An error that prevents the run is a failure of the check.
func (s *shell) check(ctx context.Context, run client.CheckRun) checks.Result {
	isolation := driver.FSNone
	if run.Task.Driver != "" {
		if i, err := s.drivers.instance("ExecTaskStreaming", run.Task.Driver, run.Task.Generation); err == nil {
			isolation = i.Capabilities().FSIsolation
		}
	}
	env, err := s.tasks.serviceEnvironment(run.Alloc, run.Definition, isolation)
	if err != nil {
		return checks.Result{Output: err.Error()}
	}
	address := ""
	if network := s.tasks.node().Network; network != nil {
		address = network.IP
	}
	target, err := probe.Resolve(run.Definition, run.Alloc.Ports, address, env.Interpolate)
	if err != nil {
		return checks.Result{Output: err.Error()}
	}
	return target.Run(ctx, func(ctx context.Context, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
		return s.execCheck(ctx, run.Task, command, streams)
	})
}

// execCheck runs the command of a check in its task. It uses the last answer of the servers on whether they require tokens: a
// request for each run would cost more than the check.
func (s *shell) execCheck(ctx context.Context, task client.TaskRef, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	if err := s.drivers.trust.last(task.Driver); err != nil {
		return driver.ExitResult{}, err
	}
	if err := s.awaitKilled(ctx, task); err != nil {
		return driver.ExitResult{}, err
	}
	i, err := s.drivers.instance("ExecTaskStreaming", task.Driver, task.Generation)
	if err != nil {
		return driver.ExitResult{}, err
	}
	if !i.Capabilities().Exec {
		return driver.ExitResult{}, fmt.Errorf("the driver %s cannot run commands in its tasks, so a check of type script always fails: use http or tcp", task.Driver)
	}
	return i.ExecStreaming(ctx, task.ID, command, streams)
}

// awaitKilled waits until no process of the task has a pending kill. Those of an earlier run of a script may hang in the
// kernel after the kill at its timeout, and each further run would add some.
func (s *shell) awaitKilled(ctx context.Context, task client.TaskRef) error {
	group, err := s.tasks.group(task.Alloc, task.Task)
	if err != nil || group == nil {
		return err
	}
	return noneKilled(ctx, func() ([]process.Description, error) { return cgroup.Killed(group) })
}

// killedInterval is the time between two looks at processes that are killed.
const killedInterval = 100 * time.Millisecond

// noneKilled waits until there are no killed processes. The error at the end of the context names one.
func noneKilled(ctx context.Context, killed func() ([]process.Description, error)) error {
	for {
		all, err := killed()
		if err != nil || len(all) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the command does not run, because a process of the task has not ended after its kill, as of an earlier run: %s", all[0])
		}
		sleep(ctx, killedInterval)
	}
}

// serviceEnvironment returns the variables of a check: those of its task, and those of the group if it has no task.
func (t *tasks) serviceEnvironment(alloc *cluster.Allocation, d checks.Definition, isolation driver.FSIsolation) (*taskenv.Env, error) {
	group, task := taskOf(alloc, d.Task)
	if task == nil {
		return taskenv.New(taskenv.Source{Node: t.node(), Region: t.region, Alloc: alloc, Group: group})
	}
	return t.environment(alloc, group, task, isolation, nil)
}

// checkList implements [nodeapi.Checks].
type checkList struct {
	*operators
	tasks *tasks
}

var _ nodeapi.Checks = (*checkList)(nil)

// checked are the checks of an allocation.
type checked struct {
	alloc   *cluster.Allocation
	reports []checks.Report
}

// List implements [nodeapi.Checks].
func (l *checkList) List(ctx context.Context, alloc string) (wire.AllocCheckStatuses, error) {
	answers := make(chan answer[checked], 1)
	l.core.Checks(cluster.AllocID(alloc), func(of *cluster.Allocation, reports []checks.Report, err error) {
		answers <- answer[checked]{checked{of, reports}, err} // it has room
	})
	of, err := await(ctx, l.operators, answers)
	if err != nil {
		return nil, err
	}
	all := make(wire.AllocCheckStatuses, len(of.reports))
	for _, r := range of.reports {
		one := wire.AllocCheckStatus{
			ID: idOfCheck(of.alloc.ID, r.Key), Check: r.Key.Check, Service: r.Key.Service, Group: of.alloc.Name, Task: r.Owner, Mode: "healthiness",
			Status: string(r.Status), StatusCode: r.Code, Output: r.Output,
		}
		if r.Definition.Check.OnUpdate == cluster.CheckIgnored {
			one.Mode = "readiness"
		}
		if env, err := l.tasks.serviceEnvironment(of.alloc, r.Definition, driver.FSNone); err == nil {
			if name, err := env.Interpolate(one.Service); err == nil {
				one.Service = name
			}
		}
		if !r.At.IsZero() {
			one.Timestamp = r.At.Unix()
		}
		all[one.ID] = one
	}
	return all, nil
}

// idOfCheck is an id that stays for the life of the allocation.
func idOfCheck(alloc cluster.AllocID, k checks.Key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %q", alloc, k.Owner, k.Service, k.Place, k.Check))
	return hex.EncodeToString(sum[:16])
}
