package swarm_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

func printed(t *testing.T, s *scenario.Scenario) string {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, scenario.Print(&b, s))
	return b.String()
}

//race:skip one goroutine
func TestGenerate_equalSeeds(t *testing.T) {
	t.Parallel()
	for _, size := range []swarm.Size{swarm.Small, swarm.Medium} {
		for seed := range uint64(20) {
			must.Eq(t, printed(t, swarm.Generate(seed, size)), printed(t, swarm.Generate(seed, size)))
		}
		must.NotEq(t, printed(t, swarm.Generate(1, size)), printed(t, swarm.Generate(2, size)))
	}
}

// A generated scenario that is printed and read again is the same. So a failing seed can be saved as a
// file.
//
//race:skip one goroutine
func TestGenerate_roundTrip(t *testing.T) {
	t.Parallel()
	seeds := map[swarm.Size]uint64{swarm.Small: 300, swarm.Medium: 20, swarm.Large: 1}
	for _, size := range swarm.Sizes() {
		for seed := range seeds[size] {
			generated := swarm.Generate(seed, size)
			text := printed(t, generated)
			read, _, err := scenario.Parse(generated.Name+scenario.Extension, strings.NewReader(text))
			must.NoError(t, err, must.Sprintf("%s:\n%s", generated.Name, text))
			for i := range read.Events {
				read.Events[i].Line = 0
			}
			if !reflect.DeepEqual(generated, read) {
				must.Eq(t, text, printed(t, read))
				must.Eq(t, generated, read)
			}
		}
	}
}

// shape counts the nodes, allocations and drained nodes of a scenario.
type shape struct{ nodes, allocs, drained int }

func shapeOf(s *scenario.Scenario) shape {
	var is shape
	for _, n := range s.Nodes {
		if !n.Unregistered {
			is.nodes += len(n.IDs)
		}
	}
	for _, a := range s.Allocs {
		is.allocs += a.Indexes.Count
	}
	drained := map[cluster.NodeID]bool{}
	for _, e := range s.Events {
		if d, is := e.Op.(*scenario.Drain); is {
			for _, id := range d.Nodes {
				drained[id] = true
			}
		}
	}
	is.drained = len(drained)
	return is
}

//race:skip one goroutine
func TestGenerate_sizes(t *testing.T) {
	t.Parallel()
	for _, size := range []struct {
		size        swarm.Size
		seeds       uint64
		least, most shape
	}{
		{swarm.Small, 500, shape{4, 9, 2}, shape{6, 60, 3}},
		{swarm.Medium, 30, shape{30, 300, 4}, shape{40, 500, 5}},
		{swarm.Large, 3, shape{1000, 19_900, 20}, shape{1000, 22_000, 24}},
	} {
		for seed := range size.seeds {
			s := swarm.Generate(seed, size.size)
			is, note := shapeOf(s), must.Sprintf("%s", s.Name)
			must.Between(t, size.least.nodes, is.nodes, size.most.nodes, note)
			must.Between(t, size.least.allocs, is.allocs, size.most.allocs, note)
			if is.drained != is.nodes { // some scenarios drain every node
				must.Between(t, size.least.drained, is.drained, size.most.drained, note)
			}
			must.Between(t, time.Minute, s.Run.Calm, 15*time.Minute, note)
			for _, e := range s.Events {
				must.Less(t, s.Run.Calm, e.At, note)
			}
		}
	}
}

// A request for several nodes has the number of nodes of its size. Only the last request may have
// fewer. Requests just before an entry are exempt: they may be for all drains.
//
//race:skip one goroutine
func TestGenerate_nodesOfOneRequest(t *testing.T) {
	t.Parallel()
	for _, size := range []struct {
		size        swarm.Size
		seeds       uint64
		least, most int
	}{
		{swarm.Small, 200, 2, 3},
		{swarm.Medium, 40, 2, 3},
		{swarm.Large, 8, 4, 8},
	} {
		counts := map[int]int{}
		for seed := range size.seeds {
			left := 0
			for _, e := range swarm.Generate(seed, size.size).Events {
				d, is := e.Op.(*scenario.Drain)
				if !is || len(d.Nodes) == 1 || e.Before != "" {
					continue
				}
				counts[len(d.Nodes)]++
				if len(d.Nodes) < size.least {
					left++
				}
			}
			must.LessEq(t, 1, left, must.Sprintf("%s %d", size.size, seed))
		}
		must.Positive(t, counts[size.least], must.Sprintf("%s: %v", size.size, counts))
		must.Positive(t, counts[size.most], must.Sprintf("%s: %v", size.size, counts))
		for n := range counts {
			must.LessEq(t, size.most, n)
		}
	}
}

// Some large scenarios restore a snapshot once, at a set time or by a fault. A scenario with the trait
// for a set time may have the fault instead.
//
//race:skip one goroutine
func TestGenerate_restoresInLarge(t *testing.T) {
	t.Parallel()
	const first, seeds = 24, 20
	atItsTime, byFault, instead := 0, 0, 0
	for i := range uint64(seeds) {
		s := swarm.Generate(first+i, swarm.Large)
		timed, faults := 0, 0
		for _, e := range s.Events {
			switch op := e.Op.(type) {
			case *scenario.Restore:
				timed++
			case *scenario.Fault:
				if op.Name == scenario.StoreRestore {
					faults++
				}
			}
		}
		must.LessEq(t, 1, timed+faults, must.Sprintf("%s", s.Name))
		atItsTime, byFault = atItsTime+timed, byFault+faults
		if slices.Contains(strings.Fields(strings.Join(s.Prose, " ")), "store/restore") {
			instead += faults
		}
	}
	must.Positive(t, atItsTime)
	must.Positive(t, instead)
	must.Greater(t, instead, byFault)
	must.LessEq(t, seeds/2, atItsTime+byFault)
}

// contents names the operations, faults, changes and kinds of jobs of a scenario.
func contents(s *scenario.Scenario) map[string]bool {
	found := map[string]bool{}
	for _, e := range s.Events {
		found[strings.TrimPrefix(fmt.Sprintf("%T", e.Op), "*scenario.")] = true
		if e.Before != "" {
			found["before "+string(e.Before)] = true
		}
		switch op := e.Op.(type) {
		case *scenario.Fault:
			found[string(op.Name)] = true
		case *scenario.NodeChange:
			found["node "+string(op.Change)] = true
		}
	}
	found["cut servers"], found["cut nodes"] = s.Run.CutServers != nil, s.Run.CutNodes != nil
	for _, j := range s.Jobs {
		found["job "+string(j.Type)] = true
		for _, g := range j.Groups {
			found["no-replace"] = found["no-replace"] || g.NoReplace
			found["keep-replacement"] = found["keep-replacement"] || g.KeepReplacement
		}
	}
	found["failures"] = slices.ContainsFunc(s.Allocs, func(a scenario.Alloc) bool { return a.Failures > 0 })
	return found
}

// Every operation and fault of the language is in some seeds, and only a few are in all.
//
//race:skip one goroutine
func TestGenerate_everyOperation(t *testing.T) {
	t.Parallel()
	const seeds = 1000
	counts := map[string]int{}
	for seed := range uint64(seeds) {
		for content, is := range contents(swarm.Generate(seed, swarm.Small)) {
			if is {
				counts[content]++
			}
		}
	}
	want := []string{
		"Drain", "Cancel", "Confirm", "Register", "Edit", "Stop", "StopAlloc", "Exit", "Place", "NodeChange",
		"Elect", "Pause", "Clock", "Restore", "Forget",
		"before marks", "before completion", "before plan", "before report",
		"node down", "node disconnected", "node ready", "node register", "node delete", "node eligible", "node ineligible",
		"cut servers", "cut nodes", "job ", "job batch", "job system", "job sysbatch",
		"no-replace", "keep-replacement", "failures",
	}
	for _, f := range scenario.Faults() {
		want = append(want, string(f.Name))
	}
	for _, content := range want {
		least := seeds / 20
		if scenario.FaultName(content).Kind().Devices {
			least = seeds / 80 // few nodes have devices
		}
		if kind := scenario.FaultName(content).Kind(); kind.Volumes || kind.Data {
			least = seeds / 200 // fewer worlds have volumes, or data that moves
		}
		must.Greater(t, least, counts[content], must.Sprintf("%s", content))
		if content != "Drain" && content != "NodeChange" && content != "job " {
			must.Less(t, seeds*9/10, counts[content], must.Sprintf("%s", content))
		}
	}
}

// A seed has half of the traits on average that its clients and nodes can have.
//
//race:skip one goroutine
func TestGenerate_halfOfTheTraits(t *testing.T) {
	t.Parallel()
	const seeds = 1000
	on, possible := 0, 0
	for seed := range uint64(seeds) {
		s := swarm.Generate(seed, swarm.Small)
		for _, line := range s.Prose[1:] {
			on += len(strings.Fields(line))
		}
		real := s.Cluster.Clients == scenario.RealClients
		equipped := slices.ContainsFunc(s.Nodes, func(n scenario.Node) bool { return len(n.Devices) > 0 })
		for _, trait := range swarm.Traits() {
			kind := scenario.FaultName(trait).Kind()
			if (real || !kind.Real) && (equipped || !kind.Devices) && (s.UsesVolumes() || !kind.Volumes) {
				possible++
			}
		}
	}
	must.Between(t, 0.45, float64(on)/float64(possible), 0.55)
}
