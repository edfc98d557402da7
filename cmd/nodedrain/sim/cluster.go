package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// clusterFlags select a real cluster to play and the nodes to drain.
type clusterFlags struct {
	dir, nodes string
	drains     int
	deadline   time.Duration
	seed       uint64
}

const (
	// defaultDeadline is the default deadline of the drains.
	defaultDeadline = 10 * time.Minute
	// defaultShare is the divisor of the default share of drained nodes: one in twenty.
	defaultShare = 20
	// settled is the time by which all allocations that fit are placed and have a verdict.
	settled = 2 * time.Minute
	// afterwards is how long a run goes on after the deadline of its drains, and patience
	// is how long it waits for drains without a deadline.
	afterwards = 30 * time.Minute
	patience   = 4 * time.Hour
)

func (f *clusterFlags) options() cli.Options {
	return cli.Options{
		cli.Flag(&f.seed, "seed S", "The seed. With -cluster it determines the choice of nodes and all durations."),
		cli.Heading(""),
		cli.Flag(&f.dir, "cluster DIR", "Play the cluster of DIR/nodes.csv and DIR/pods.csv, in the format of Alibaba's cluster-trace-gpu-v2023, instead of files: "+
			"running pods of equal request and QoS make one job."),
		cli.Flag(&f.nodes, "nodes A,B,C", "With -cluster: the nodes to drain."),
		cli.Flag(&f.drains, "drains N", "With -cluster: the number of nodes to drain, chosen by the seed. Default: 5% of the nodes."),
		cli.Flag(&f.deadline, "deadline D", "With -cluster: the deadline of the drains; 0 is none."),
	}
}

func (f *clusterFlags) check(set func(flag string) bool) error {
	if f.dir == "" {
		for _, name := range [...]string{"nodes", "drains", "deadline"} {
			if set(name) {
				return fmt.Errorf("-%s needs -cluster DIR", name)
			}
		}
		return nil
	}
	switch {
	case f.deadline < 0:
		return fmt.Errorf("-deadline is %s and must not be below 0", f.deadline)
	case set("drains") && f.drains <= 0:
		return fmt.Errorf("-drains is %d and must be above 0", f.drains)
	case set("nodes") && f.nodes == "":
		return errors.New("-nodes names no node")
	}
	return nil
}

// playing returns the drain of the cluster's nodes as a scenario to play.
func (f *clusterFlags) playing() (playing, error) {
	s, err := f.scenario()
	if err != nil {
		return playing{}, err
	}
	replay := fmt.Sprintf("nodedrain sim run -cluster %s -deadline %s -seed %d", quoted(f.dir), f.deadline, f.seed)
	if f.nodes != "" {
		replay += " -nodes " + quoted(f.nodes)
	} else if f.drains > 0 {
		replay += fmt.Sprintf(" -drains %d", f.drains)
	}
	return playing{label: s.Name, replay: replay, scenario: s}, nil
}

// scenario returns the cluster as a scenario: the cluster starts empty, places its jobs,
// and drains nodes when the allocations are healthy.
func (f *clusterFlags) scenario() (*scenario.Scenario, error) {
	trace, err := openb.Load(f.dir)
	if err != nil {
		return nil, err
	}
	nodes := trace.Nodes()
	drained, err := f.drained(nodes)
	if err != nil {
		return nil, err
	}
	s := &scenario.Scenario{
		Name: "cluster", Seed: f.seed,
		Prose: []string{
			fmt.Sprintf("%d machines and %d pods listed in %s. %d nodes are drained at once.", len(trace.Machines), len(trace.Pods), f.dir, len(drained)),
		},
		Cluster: scenario.Cluster{
			Servers:   3,
			Commit:    between(2*time.Millisecond, 20*time.Millisecond),
			Establish: between(500*time.Millisecond, 2*time.Second),
			Wake:      between(time.Millisecond, 10*time.Millisecond),
			Schedule:  between(time.Millisecond, 50*time.Millisecond),
		},
		Nodes: nodesOf(nodes),
		Jobs:  jobsOf(trace.Jobs()),
		Clients: []scenario.Client{{
			Start: new(between(time.Second, 5*time.Second)),
			Stop:  new(between(time.Second, 10*time.Second)),
			Run:   new(between(24*time.Hour, 24*time.Hour)), // the trace's batch work lasts for weeks
		}},
		Events: []scenario.Event{{At: settled, Op: &scenario.Drain{Nodes: drained, Deadline: f.deadline}}},
		Run:    scenario.Run{For: settled + f.deadline + afterwards, Brief: true},
	}
	if f.deadline == 0 {
		s.Run.For = settled + patience
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("making a scenario of %s: %w", f.dir, err)
	}
	return s, nil
}

func between(least, most time.Duration) scenario.Range { return scenario.Range{Min: least, Max: most} }

// drained returns the named nodes, or the requested number of nodes chosen by the seed,
// in the order of the list.
func (f *clusterFlags) drained(nodes []*cluster.Node) ([]cluster.NodeID, error) {
	if f.nodes != "" {
		return named(nodes, strings.Split(f.nodes, ","))
	}
	n := f.drains
	if n == 0 {
		n = max(1, len(nodes)/defaultShare)
	}
	if n > len(nodes)/2 {
		return nil, fmt.Errorf("cannot drain %d of %d nodes at once: at most half of them, so that their allocations fit elsewhere", n, len(nodes))
	}
	places := rand.New(rand.NewPCG(f.seed, 0)).Perm(len(nodes))[:n]
	slices.Sort(places)
	drained := make([]cluster.NodeID, n)
	for i, at := range places {
		drained[i] = nodes[at].ID
	}
	return drained, nil
}

func named(nodes []*cluster.Node, names []string) ([]cluster.NodeID, error) {
	var drained []cluster.NodeID
	for _, name := range names {
		id := cluster.NodeID(name)
		if !slices.ContainsFunc(nodes, func(n *cluster.Node) bool { return n.ID == id }) {
			return nil, fmt.Errorf("the cluster has no node %q", name)
		}
		if slices.Contains(drained, id) {
			return nil, fmt.Errorf("-nodes names %s twice", name)
		}
		drained = append(drained, id)
	}
	return drained, nil
}

// nodesOf declares nodes. Adjacent nodes of the same shape share a line.
func nodesOf(nodes []*cluster.Node) (all []scenario.Node) {
	for i, n := range nodes {
		if i > 0 && n.Resources == nodes[i-1].Resources && n.NodeClass == nodes[i-1].NodeClass {
			last := &all[len(all)-1]
			last.IDs = append(last.IDs, n.ID)
			continue
		}
		all = append(all, scenario.Node{
			IDs: []cluster.NodeID{n.ID}, Class: n.NodeClass,
			CPU: n.Resources.CPU, MemoryMB: n.Resources.MemoryMB, DiskMB: n.Resources.DiskMB, GPUMilli: n.Resources.GPU,
		})
	}
	return all
}

// jobsOf declares jobs. Each job has one group, named like the job.
func jobsOf(jobs []*cluster.Job) (all []scenario.Job) {
	for _, j := range jobs {
		name := strings.ReplaceAll(string(j.ID), "|", "_") // names of scenarios have no |
		declared := scenario.Job{Key: cluster.JobKey{Namespace: j.Namespace, ID: cluster.JobID(name)}, Type: j.Type}
		for _, g := range j.TaskGroups {
			r := g.Resources()
			group := scenario.Group{Name: name, Count: g.Count, CPU: r.CPU, MemoryMB: r.MemoryMB, GPUMilli: r.GPU, Classes: g.NodeClasses}
			if g.Migrate != nil {
				group.MaxParallel = new(g.Migrate.MaxParallel)
			}
			declared.Groups = append(declared.Groups, group)
		}
		all = append(all, declared)
	}
	return all
}
