package swarm

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The times of a steady scenario. Allocations that end by themselves end long before a deadline, and
// stops end long before the wait of a stage. So no fact depends on a race.
const (
	// steadyBegin is the time of the first drain, steadyApart the time between two drains. They
	// differ, so that all variants begin the drains in one order.
	steadyBegin = time.Second
	steadyApart = 10 * time.Millisecond
	// steadyDeadline is the deadline of every drain. With different deadlines, the moves after one
	// could race with the next.
	steadyDeadline = 30 * time.Minute
	// steadyCalm is when all faults end. It is after the last deadline.
	steadyCalm = 45 * time.Minute
	// steadyRun is the least time that batch work runs. All drains begin before it ends.
	steadyRun = time.Minute
	// The longest times of clients.
	steadyStart = 5 * time.Second
	steadyCopy  = 10 * time.Second
	steadyStop  = 2 * time.Second
)

// Steady returns the scenario without everything that lets a correct run end with different facts:
// races, tight times and probabilities. It keeps the nodes, the jobs, the allocations, the drainer's
// configuration and the first drain of each node. Its final facts are the same for every seed and
// every delay.
func Steady(s *scenario.Scenario) *scenario.Scenario {
	steady := s.Copy()
	steady.Name += "-steady"
	steady.Prose = append(steady.Prose, "Steady: no race decides a final fact.")
	steadyServers(&steady.Cluster)
	withoutVolumes(steady)
	steadyDrainer(&steady.Drainer)
	steadyAllocs(steady.Allocs)
	steadyCounts(steady)
	steady.Nodes = roomyNodes(steady.Nodes, devicesRequested(steady))
	steady.Clients = steadyClients(steady)
	steady.Events = steadyEvents(steady.Events)
	steady.Nodes = steadyEligibility(steady.Nodes, steady.Events)
	steady.Run.Calm, steady.Run.For = steadyCalm, steadyCalm+afterwards
	steady.Run.Drained = false                            // compare the facts at the very end
	steady.Run.CutServers, steady.Run.CutNodes = nil, nil // the cut may decide a race
	return steady
}

// roomyNodes removes all limits of the nodes and adds one more node of each class. It has the devices
// that jobs request; if these are too many for a node, it adds several. So there is room even if all
// other nodes drain.
func roomyNodes(nodes []scenario.Node, devices int) []scenario.Node {
	var havens []scenario.Node
	has := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		n.CPU, n.MemoryMB, n.DiskMB, n.GPUMilli, n.MaxAllocs = 0, 0, 0, 0, 0
		if has[n.Class] {
			continue
		}
		has[n.Class] = true
		for left := devices; ; left -= scenario.MaxDevices {
			haven := scenario.Node{IDs: ids(cluster.NodeID(fmt.Sprintf("haven%d", len(havens)+1))), Class: n.Class}
			if left > 0 {
				haven.Devices = gpus(min(left, scenario.MaxDevices))
			}
			havens = append(havens, haven)
			if left <= scenario.MaxDevices {
				break
			}
		}
	}
	return append(nodes, havens...)
}

// devicesRequested is how many devices the allocations of all jobs request.
func devicesRequested(s *scenario.Scenario) (requested int) {
	for _, g := range s.EachGroup() {
		for _, r := range g.Devices {
			requested += g.Count * r.Count
		}
	}
	return requested
}

// steadyEligibility makes the nodes that drain ineligible from the beginning. Otherwise the
// scheduler may place a replacement on a node that drains next, or elsewhere, and a group
// without paced moves keeps the first until the deadline.
func steadyEligibility(nodes []scenario.Node, events []scenario.Event) []scenario.Node {
	drains := map[cluster.NodeID]bool{}
	for _, e := range events {
		for _, id := range e.Op.(*scenario.Drain).Nodes {
			drains[id] = true
		}
	}
	var single []scenario.Node
	for _, n := range nodes {
		for _, id := range n.IDs {
			one := n
			one.IDs, one.Ineligible = ids(id), n.Ineligible || drains[id]
			single = append(single, one)
		}
	}
	return single
}

// steadyAllocs keeps missing verdicts from being overdue when the story begins. The drainer
// may mark an overdue allocation, but not after its verdict: the faster of the two would win.
func steadyAllocs(allocs []scenario.Alloc) {
	for i := range allocs {
		if a := &allocs[i]; a.Health == "none" {
			a.Age = time.Second
		}
	}
}

// steadyCounts raises each count to the number of allocations at the beginning. The scheduler stops
// surplus allocations, and which ones may depend on a race.
func steadyCounts(s *scenario.Scenario) {
	runs := map[cluster.GroupKey]int{}
	for _, a := range s.Allocs {
		if a.Desired == "" && !a.Canary {
			runs[a.Group] += len(a.On)
		}
	}
	for j, g := range s.EachGroup() {
		if !j.Type.EveryNode() {
			g.Count = max(g.Count, runs[cluster.GroupKey{Job: j.Key, Name: g.Name}])
		}
	}
}

func steadyServers(c *scenario.Cluster) {
	c.Clients = "" // real clients take more time to stop allocations than a steady stop has
	for _, way := range []struct {
		is   *scenario.Range
		most time.Duration
	}{
		{&c.Commit, 20 * time.Millisecond}, {&c.Establish, time.Second}, {&c.Wake, 5 * time.Millisecond},
		{&c.Schedule, 50 * time.Millisecond}, {&c.Late, scenario.DefaultLate},
	} {
		*way.is = atMost(*way.is, way.most)
	}
}

// withoutVolumes removes the volumes: they need real clients.
func withoutVolumes(s *scenario.Scenario) {
	s.Cluster.Hold, s.Volumes = 0, nil
	for _, g := range s.EachGroup() {
		g.Serves, g.Volumes = scenario.Service{}, nil
	}
}

// steadyDrainer removes the options that let a drain end before its allocations have stopped.
func steadyDrainer(d *drainer.NodeDrainerConfig) {
	d.Policy.StopMargin = 0
	if d.Policy.Completion == rules.CompletionMarked {
		d.Policy.Completion = rules.CompletionStopped
	}
}

func atMost(r scenario.Range, most time.Duration) scenario.Range {
	return scenario.Range{Min: min(r.Min, most), Max: min(r.Max, most)}
}

// steadyClients limits the times of clients, except for never. Only the allocations at the beginning
// keep the behaviour of the scenario. Replacements are fast and healthy, because their nodes depend on
// a race.
func steadyClients(s *scenario.Scenario) []scenario.Client {
	paced := map[cluster.JobKey]bool{}
	for _, j := range s.Jobs {
		paced[j.Key] = j.Type == "" || j.Type == cluster.JobService
	}
	var steady []scenario.Client
	for _, c := range s.Clients {
		if c.Match.Node != "" || c.Match.Replacement {
			continue
		}
		if c.Stop != nil && c.Stop.Min == scenario.Never && paced[c.Match.Job] {
			continue // it blocks the pace, and which allocations stay would depend on a race
		}
		for _, field := range []struct {
			is   *scenario.Range
			most time.Duration
		}{{c.Start, steadyStart}, {c.Copy, steadyCopy}, {c.Stop, steadyStop}} {
			if field.is != nil && field.is.Min < scenario.Never {
				*field.is = atMost(*field.is, field.most)
			}
		}
		if c.Run != nil && c.Run.Min < scenario.Never {
			c.Run.Min, c.Run.Max = c.Run.Min+steadyRun, c.Run.Max+steadyRun
		}
		c.Verdict, c.Unhealthy, c.Worsen, c.Recover = nil, nil, nil, nil
		steady = append(steady, c)
	}
	return append(steady, scenario.Client{
		Match: scenario.Selector{Replacement: true}, Stop: &scenario.Range{Min: time.Second, Max: steadyStop},
	})
}

// steadyEvents keeps the first drain of each node and gives all the same deadline. A drain without a
// deadline may leave different allocations behind, depending on the order of moves.
func steadyEvents(events []scenario.Event) []scenario.Event {
	var steady []scenario.Event
	drained := map[cluster.NodeID]bool{}
	for _, e := range events {
		op, is := e.Op.(*scenario.Drain)
		if !is || e.Before != "" {
			continue
		}
		var nodes []cluster.NodeID
		for _, id := range op.Nodes {
			if !drained[id] {
				drained[id] = true
				nodes = append(nodes, id)
			}
		}
		if len(nodes) == 0 {
			continue
		}
		op.Nodes = nodes
		if op.Deadline >= 0 {
			op.Deadline = steadyDeadline
		}
		steady = append(steady, scenario.Event{At: steadyBegin + time.Duration(len(steady))*steadyApart, Op: op})
	}
	return steady
}
