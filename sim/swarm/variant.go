package swarm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Variant is a change of a steady scenario. The change may alter the times in the run, but not its
// final facts.
type Variant struct {
	// Name is stable. Failures and the names of scenarios contain it.
	Name string
	// What describes the change.
	What string
	// change edits a copy of the steady scenario.
	change func(*scenario.Scenario, dice)
}

// Variants returns all variants.
func Variants() []Variant {
	return []Variant{
		{"chance", "another seed, which draws other times and breaks ties in another way", changeSeed},
		{"wakes", "spurious, late and merged wake-ups of the drainer", addWakes},
		{"writes", "rejected, late, not accepted and unknown writes of the drainer", addWriteFaults},
		{"terms", "elections, drainers that lose their memory, and a restored snapshot", addElections},
		{"stale", "reads of old states", addStaleReads},
		{"entries", "entries of another size, at another pace", changeEntries},
		{"servers", "another number of servers, other leaders, and replicas instead of one store or the opposite", changeServers},
		{"collection", "the collection of ended work, or none", changeCollection},
		{"order", "nodes and jobs in the opposite order", reverseOrder},
		{"heartbeats", "nodes that report their status again", addHeartbeats},
		{"bystander", "one more drain, of a node without allocations", addBystander},
	}
}

// Apply returns the variant of a steady scenario. Equal scenarios have equal variants.
func (v Variant) Apply(steady *scenario.Scenario) *scenario.Scenario {
	s := steady.Copy()
	s.Name += "-" + v.Name
	s.Prose = append(s.Prose, "Variant: "+v.What+".")
	v.change(s, dice{world.Stream(steady.Seed, "metamorphic/"+v.Name)})
	slices.SortStableFunc(s.Events, func(a, b scenario.Event) int { return int(a.At - b.At) })
	return s
}

// mostRepeats is the most repetitions of an event in a variant.
const mostRepeats = 6

// busyTime draws a time while allocations move, or near a deadline.
func busyTime(d dice) time.Duration {
	if d.odds(0.7) {
		return steadyBegin + d.span(10*time.Millisecond, 2*time.Minute)
	}
	return d.at(steadyDeadline, steadyDeadline*4/3+time.Minute)
}

// addEvent adds an event to a scenario.
func addEvent(s *scenario.Scenario, at time.Duration, op scenario.Op) {
	s.Events = append(s.Events, scenario.Event{At: at, Op: op})
}

// addFaults arms faults until the calm.
func addFaults(s *scenario.Scenario, d dice, on string, most time.Duration, names ...scenario.FaultName) {
	for _, name := range names {
		f := &scenario.Fault{Name: name, On: on, Probability: one(d, 0.02, 0.05, 0.1), For: steadyCalm}
		if most > 0 {
			f.Delay = d.ranging(10*time.Millisecond, most)
		}
		addEvent(s, 0, f)
	}
}

func changeSeed(s *scenario.Scenario, d dice) { s.Seed = 1 + d.Uint64N(1<<62) }

func addWakes(s *scenario.Scenario, d dice) {
	addFaults(s, d, "", 10*time.Second, scenario.WatchSpurious, scenario.WatchDelay, scenario.WatchCoalesce)
}

func addWriteFaults(s *scenario.Scenario, d dice) {
	addFaults(s, d, "drainer", 0, scenario.ApplyReject, scenario.ApplyFull, scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLost)
	addFaults(s, d, "drainer", 2*time.Second, scenario.ApplyAmbiguousLate, scenario.ApplySlow)
}

func addElections(s *scenario.Scenario, d dice) {
	for range d.between(1, mostRepeats) {
		op := &scenario.Elect{Lost: d.odds(0.5)}
		if d.odds(0.4) {
			op.Unaware = d.span(100*time.Millisecond, 20*time.Second)
		}
		addEvent(s, busyTime(d), op)
		addEvent(s, busyTime(d), &scenario.Forget{})
	}
	addEvent(s, busyTime(d), &scenario.Restore{})
	addEvent(s, busyTime(d), &scenario.Fault{Name: scenario.LeaderLoseMidBatch, Count: d.between(1, mostRepeats)})
}

func addStaleReads(s *scenario.Scenario, d dice) {
	addFaults(s, d, "", 10*time.Second, scenario.ViewStale)
}

func changeEntries(s *scenario.Scenario, d dice) {
	s.Drainer.MaxIDsPerEntry, s.Drainer.MaxInFlight = d.between(2, 8), d.between(1, 4)
	s.Drainer.MinWriteInterval = one(d, 0, d.span(50*time.Millisecond, 5*time.Second))
	s.Drainer.DeadlineCoalesce = one(d, -1, d.span(100*time.Millisecond, 5*time.Second))
}

func changeServers(s *scenario.Scenario, d dice) {
	s.Cluster.Replicas = !s.Cluster.Replicas
	s.Cluster.Servers = d.between(2, 5)
	for range 2 { // otherwise only the first server leads
		addEvent(s, busyTime(d), &scenario.Elect{})
	}
}

func changeCollection(s *scenario.Scenario, d dice) {
	age := d.span(500*time.Millisecond, time.Minute)
	if s.Cluster.Collect > 0 {
		age = 0
	}
	s.Cluster.Collect = age
}

func reverseOrder(s *scenario.Scenario, _ dice) {
	slices.Reverse(s.Nodes)
	slices.Reverse(s.Jobs)
}

func addHeartbeats(s *scenario.Scenario, d dice) {
	for _, n := range s.Nodes {
		if n.Unregistered || n.Status != "" {
			continue
		}
		for range mostRepeats {
			addEvent(s, busyTime(d), &scenario.NodeChange{Nodes: n.IDs, Change: scenario.NodeReady, Unnoticed: true})
		}
	}
}

// bystander is an ineligible node, so no job uses it.
const bystander cluster.NodeID = "bystander"

// addBystander drains a node without allocations. This drain comes last, so that the ids of the other
// drains stay the same.
func addBystander(s *scenario.Scenario, d dice) {
	s.Nodes = append(s.Nodes, scenario.Node{IDs: ids(bystander), Ineligible: true})
	at := steadyBegin + time.Duration(len(s.Events))*steadyApart + d.span(10*time.Millisecond, time.Minute)
	addEvent(s, at, &scenario.Drain{Nodes: ids(bystander), Deadline: one(d, 0, steadyDeadline)})
}

// isMetamorphic reports whether a seed is also played as a steady scenario and as a variant.
func (o Options) isMetamorphic(seed uint64) bool {
	return o.Metamorphic > 0 && world.Stream(seed, "swarm/metamorphic").Float64() < o.Metamorphic
}

// Scenarios returns the failed scenario of the seed. If a variant failed, it returns the steady
// scenario and the variant.
func (f *Failure) Scenarios() []*scenario.Scenario {
	s := Generate(f.Seed, f.Size)
	for _, v := range Variants() {
		if v.Name == f.Variant {
			steady := Steady(s)
			return []*scenario.Scenario{steady, v.Apply(steady)}
		}
	}
	return []*scenario.Scenario{s}
}

// variantOf draws the variant of a seed.
func variantOf(seed uint64) Variant {
	return one(dice{world.Stream(seed, "swarm/relation")}, Variants()...)
}

// compareVariant plays the steady scenario and its variant. Both must keep the guarantees, and their
// final facts must be equal.
func (o Options) compareVariant(s *scenario.Scenario, v Variant) *Failure {
	steady := Steady(s)
	want, failure := o.facts(steady)
	if failure == nil {
		var got []string
		if got, failure = o.facts(v.Apply(steady)); failure == nil {
			failure = compare(want, got)
		}
	}
	if failure != nil {
		failure.Variant = v.Name
		failure.Text = fmt.Sprintf("steady run and variant %s (%s): %s", v.Name, v.What, failure.Text)
	}
	return failure
}

// facts plays a scenario and returns its final facts, but for the bystander and for groups that run
// nothing: the collection deletes a job whose work has ended.
func (o Options) facts(s *scenario.Scenario) ([]string, *Failure) {
	var end *world.World // nil if Play does not call Watch
	_, failure := o.play(s, sim.Options{Watch: func(w *world.World) { end = w }})
	if failure != nil || end == nil {
		return nil, failure
	}
	var facts []string
	for _, fact := range sim.Facts(end.Truth()) {
		if !strings.HasPrefix(fact, fmt.Sprintf("node %s ", bystander)) && !strings.Contains(fact, " runs 0 of ") {
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// compare returns a failure if the facts of two runs differ.
func compare(want, got []string) *Failure {
	judge := invariant.New(invariant.Options{})
	judge.SameFacts(time.Time{}, want, got)
	found := judge.Violations()
	if len(found) == 0 {
		return nil
	}
	return &Failure{Kind: Metamorphic, Violations: found, Text: found[0].String()}
}
