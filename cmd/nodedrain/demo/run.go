package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// lookInterval is the time between two looks at the progress.
const lookInterval = 100 * time.Millisecond

// ErrTimeout says that [Config].Timeout passed before the first drain.
var ErrTimeout = errors.New("the demonstration took longer than its timeout")

// run is one run of the demonstration.
type run struct {
	config   Config
	scale    scale
	began    time.Time
	loaded   time.Time // when the cluster was loaded or generated
	cluster  *Cluster
	limits   map[cluster.GroupKey]int // of the cluster's migrate blocks
	progress *lines
	observer *observer
	group    *server.Group
	servers  []*server.Server // all, with the killed one
	drains   []*drainRun
	drained  time.Time // when the drains started
	killed   time.Time // when the leader was, or zero
	ended    time.Time // when all drains had ended or time was up
	// left is how many allocations had to leave at the last look, since when it was so many.
	left      int
	leftSince time.Time
	summary   *Summary
	phase     atomic.Pointer[string] // what a silent run waits for
}

// Run runs the demonstration: it starts servers and clients, registers a cluster, drains
// nodes, kills the leader half-way, and counts the result. Without a summary the
// error has the reason; the summary holds the failures of drains. All goroutines of Run have ended when it
// returns.
func Run(ctx context.Context, config Config) (*Summary, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &run{config: config, progress: newLines(config.Progress), scale: scale(config.TimeScale), began: time.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, config.Timeout, ErrTimeout)
	defer cancel()
	r.enter("the cluster to be loaded")
	waiting := cli.StartWaiting(func(line string) { fmt.Fprintln(config.Progress, line) }, func() string { return *r.phase.Load() })
	defer waiting.End()
	r.progress.printed = waiting.Printed
	if err := r.prepare(); err != nil {
		return nil, err
	}
	r.enter("the servers to start and to register the cluster")
	clients, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	err = r.drain(ctx)
	r.enter("clients and servers to end")
	r.ended = time.Now() // before the shutdown, in which raft waits for requests to the killed server
	if stop := r.stop(clients); err == nil {
		err = stop
	}
	if err != nil {
		return nil, err
	}
	return r.finish(), nil
}

// enter begins a phase. It names what the phase waits for.
func (r *run) enter(phase string) { r.phase.Store(&phase) }

// prepare loads or generates the cluster.
func (r *run) prepare() (err error) {
	if r.cluster, err = r.config.cluster(); err != nil {
		return err
	}
	if _, err := r.config.drains(len(r.cluster.Nodes)); err != nil {
		return err
	}
	r.limits = r.cluster.limits()
	r.loaded = time.Now()
	load := r.loaded.Sub(r.began)
	r.summary = &Summary{
		Version: SummaryVersion, Servers: r.config.Servers, Seed: r.config.Seed, TimeScale: r.config.TimeScale,
		Failures: []string{}, Drains: []DrainSummary{}, Groups: []GroupSummary{}, Findings: []string{},
		Cluster: ClusterSummary{
			Origin: r.cluster.Origin, Nodes: len(r.cluster.Nodes), Jobs: len(r.cluster.Jobs), LoadSeconds: round(load),
		},
	}
	r.event("tasks are simulated, so that a large cluster fits and drains fast; \"nodedrain dev\" runs real ones")
	r.event("cluster: %s; %d jobs; loaded in %s", r.cluster.Origin, len(r.cluster.Jobs), load.Round(time.Millisecond))
	r.event("time scale %v: a simulated minute takes %s", r.config.TimeScale, r.scale.real(time.Minute).Round(time.Millisecond))
	return nil
}

// start starts servers and clients.
func (r *run) start(ctx context.Context) (*clients, error) {
	clients, err := r.newClients()
	if err != nil {
		return nil, err
	}
	policy := r.scale.policy()
	r.observer = newObserver(witness.Options{StopMargin: policy.StopMargin}, clients.notice)
	r.group, err = server.NewGroup(server.GroupConfig{
		Servers:  r.config.Servers,
		Loopback: r.config.Loopback,
		Server: server.Config{
			Logger:  r.config.Logger,
			Drainer: drainer.NodeDrainerConfig{Policy: policy},
			OnApply: r.observer.applied,
		},
	})
	if err != nil {
		return nil, err
	}
	r.servers = r.group.Servers()
	clients.start(ctx, r.group)
	return clients, nil
}

// stop ends clients and servers.
func (r *run) stop(clients *clients) error {
	clients.stop()
	if err := r.group.Shutdown(); err != nil {
		return fmt.Errorf("shutting the servers down: %w", err)
	}
	return nil
}

// drain registers the cluster, drains nodes and kills the leader half-way. It returns when all
// drains have ended, or at the timeout.
func (r *run) drain(ctx context.Context) error {
	if err := r.register(ctx); err != nil {
		return err
	}
	r.enter("a leader")
	if err := r.settle(ctx); err != nil {
		return err
	}
	c := &r.summary.Cluster
	c.SetupSeconds = round(time.Since(r.loaded))
	r.event("registered, placed and healthy: %d of %d allocations", c.Placed, c.Wanted)
	for _, u := range c.Unplaced {
		r.event("no capacity for %d allocations of %s", u.Count, u.Group)
	}
	r.enter("the drains to begin")
	if err := r.startDrains(ctx); err != nil {
		return err
	}
	for !r.look() {
		if r.killed.IsZero() && r.halfWay() {
			if err := r.killLeader(); err != nil {
				return err
			}
		}
		if cli.Pause(ctx, lookInterval) {
			continue
		}
		if err := context.Cause(ctx); !errors.Is(err, ErrTimeout) {
			return err
		}
		break // the summary names the drains that did not end
	}
	return nil
}

func (r *run) startDrains(ctx context.Context) error {
	leader := r.group.Leader()
	if leader == nil {
		return errors.New("the leader was lost before the first drain")
	}
	n, err := r.config.drains(len(r.cluster.Nodes))
	if err != nil {
		return err
	}
	r.drains, err = choose(leader.Store().Snapshot(), n, r.scale.real(r.config.Deadline), r.config.Seed)
	if err != nil {
		return err
	}
	r.drained = time.Now()
	limited := 0
	for _, d := range r.drains {
		if err := d.start(ctx, r.group); err != nil {
			return err
		}
		if d.deadline > 0 {
			limited++
		}
	}
	r.event("%d nodes drain at once, %d of them with a deadline of %s (%s here)",
		len(r.drains), limited, r.config.Deadline, r.scale.real(r.config.Deadline).Round(time.Millisecond))
	return nil
}

// look reads and shows the progress. It returns true when all drains have ended and there is a
// leader again.
func (r *run) look() (ended bool) {
	look := Look{At: time.Since(r.began)}
	statuses := make(map[cluster.NodeID]rules.Status)
	source := r.newest()
	if leader := r.group.Leader(); leader != nil {
		if all, err := leader.Drainer().Status(); err == nil {
			look.Leader, source = string(leader.ID()), leader
			for _, s := range all {
				statuses[s.Drain.NodeID] = s
			}
		}
	}
	r.noteLeader(look)
	snap := source.Store().Snapshot()
	ended = true
	for _, d := range r.drains {
		if record := snap.DrainRecord(d.id); record != nil {
			d.last.Outcome, d.last.Took = record.Outcome, record.EndedAt.Sub(record.Strategy.StartedAt)
			d.last.Left, d.last.Waiting = record.StillStopping, [rules.ReasonCount]int{}
		} else {
			ended = false
			if s, ok := statuses[d.node]; ok {
				d.setLeft(s.Left)
				d.last.Reason, d.last.Waiting, d.last.Cause = s.Reason, s.Waiting, ""
				if s.Worst != nil {
					d.last.Cause = cli.ShortIDs(cli.LocalTimes(s.Worst.Cause()))
				}
			}
		}
		if d.deadline > 0 {
			d.last.Deadline = d.deadline - time.Since(r.drained)
		}
		look.Drains = append(look.Drains, d.last)
	}
	_, _, left, _ := look.sum()
	if left != r.left || r.leftSince.IsZero() {
		r.left, r.leftSince = left, time.Now()
	}
	look.Still = time.Since(r.leftSince)
	r.progress.show(look)
	return ended && (r.summary.LeaderKill == nil || r.summary.LeaderKill.NewLeader != "")
}

// newest returns the running server with the newest state.
func (r *run) newest() *server.Server {
	var newest *server.Server
	for _, s := range r.group.Servers() {
		if newest == nil || s.Store().Snapshot().Index() > newest.Store().Snapshot().Index() {
			newest = s
		}
	}
	return newest
}

// finish makes the summary from the report of the witness.
func (r *run) finish() *Summary {
	report, err := r.observer.report(r.servers)
	if err != nil {
		r.summary.Failures = append(r.summary.Failures, err.Error())
	}
	r.summary.add(report, r.drains, r.limits)
	r.summary.Seconds = round(r.ended.Sub(r.began))
	r.summary.Failures = append(r.summary.Failures, judge(r.summary, report)...)
	r.summary.OK = len(r.summary.Failures) == 0
	return r.summary
}

func (r *run) event(format string, args ...any) {
	r.progress.event(time.Since(r.began), fmt.Sprintf(format, args...))
}
