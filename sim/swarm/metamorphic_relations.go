package swarm

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Relation is a way of telling a steady story otherwise that may change when something
// happens, and must not change what comes of it.
type Relation struct {
	// Name is stable: what fails is told by it.
	Name string
	// What says what is told otherwise.
	What string
	// tell changes a copy of the story.
	tell func(*scenario.Scenario, dice)
}

// Relations returns every relation.
func Relations() []Relation {
	return []Relation{
		{"chance", "another seed: other ties and other random numbers", tellChance},
		{"wakes", "wake-ups of the drainer that are for nothing, late, or merged", tellWakes},
		{"writes", "writes of the drainer that are rejected, late, not taken or of unknown outcome", tellWrites},
		{"terms", "terms that end, drainers that forget, snapshots that are restored", tellTerms},
		{"stale", "looks at states of some entries ago", tellStale},
		{"entries", "entries of another size, at another pace", tellEntries},
		{"servers", "replicas instead of views or the other way, another number of them, others that lead", tellServers},
		{"order", "nodes and jobs written in the opposite order", tellOrder},
		{"heartbeats", "nodes that say again how they are", tellHeartbeats},
		{"bystander", "a node with nothing on it that is drained too", tellBystander},
	}
}

// Tell returns the story told otherwise. Equal stories are told equally.
func (r Relation) Tell(steady *scenario.Scenario) *scenario.Scenario {
	told := steady.Copy()
	told.Name += "-" + r.Name
	told.Prose = append(told.Prose, "Told otherwise: "+r.What+".")
	r.tell(told, dice{world.Stream(steady.Seed, "metamorphic/"+r.Name)})
	slices.SortStableFunc(told.Events, func(a, b scenario.Event) int { return int(a.At - b.At) })
	return told
}

// retold is how often what may happen again and again does.
const retold = 6

// meanwhile draws a time at which a steady story goes on: while allocations move, or
// about a deadline.
func meanwhile(d dice) time.Duration {
	if d.odds(0.7) {
		return steadyBegin + d.span(10*time.Millisecond, 2*time.Minute)
	}
	return d.at(steadyDeadline, steadyDeadline*4/3+time.Minute)
}

// happens adds an event to a story.
func happens(s *scenario.Scenario, at time.Duration, op scenario.Op) {
	s.Events = append(s.Events, scenario.Event{At: at, Op: op})
}

// plagues arms faults for all the time that faults last.
func plagues(s *scenario.Scenario, d dice, on string, most time.Duration, names ...scenario.FaultName) {
	for _, name := range names {
		f := &scenario.Fault{Name: name, On: on, Probability: one(d, 0.02, 0.05, 0.1), For: steadyCalm}
		if most > 0 {
			f.Delay = d.ranging(10*time.Millisecond, most)
		}
		happens(s, 0, f)
	}
}

func tellChance(s *scenario.Scenario, d dice) { s.Seed = 1 + d.Uint64N(1<<62) }

func tellWakes(s *scenario.Scenario, d dice) {
	plagues(s, d, "", 10*time.Second, scenario.WatchSpurious, scenario.WatchDelay, scenario.WatchCoalesce)
}

func tellWrites(s *scenario.Scenario, d dice) {
	plagues(s, d, "drainer", 0, scenario.ApplyReject, scenario.ApplyFull, scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLost)
	plagues(s, d, "drainer", 2*time.Second, scenario.ApplyAmbiguousLate, scenario.ApplySlow)
}

func tellTerms(s *scenario.Scenario, d dice) {
	for range d.between(1, retold) {
		op := &scenario.Elect{Lost: d.odds(0.5)}
		if d.odds(0.4) {
			op.Believes = d.span(100*time.Millisecond, 20*time.Second)
		}
		happens(s, meanwhile(d), op)
		happens(s, meanwhile(d), &scenario.Forget{})
	}
	happens(s, meanwhile(d), &scenario.Restore{})
	happens(s, meanwhile(d), &scenario.Fault{Name: scenario.LeaderLoseMidBatch, Count: d.between(1, retold)})
}

func tellStale(s *scenario.Scenario, d dice) {
	plagues(s, d, "", 10*time.Second, scenario.ViewStale)
}

func tellEntries(s *scenario.Scenario, d dice) {
	s.Drainer.MaxIDs, s.Drainer.InFlight = d.between(2, 8), d.between(1, 4)
	s.Drainer.MinInterval = one(d, 0, d.span(50*time.Millisecond, 5*time.Second))
	s.Drainer.Coalesce = one(d, scenario.NoCoalescing, d.span(100*time.Millisecond, 5*time.Second))
}

func tellServers(s *scenario.Scenario, d dice) {
	s.Cluster.Replicas = !s.Cluster.Replicas
	s.Cluster.Servers = d.between(2, 5)
	for range 2 { // with one, only the first leader looks
		happens(s, meanwhile(d), &scenario.Elect{})
	}
}

func tellOrder(s *scenario.Scenario, _ dice) {
	slices.Reverse(s.Nodes)
	slices.Reverse(s.Jobs)
}

func tellHeartbeats(s *scenario.Scenario, d dice) {
	for _, n := range s.Nodes {
		if n.Unregistered || n.Status != "" {
			continue
		}
		for range retold {
			happens(s, meanwhile(d), &scenario.NodeChange{Nodes: n.IDs, Change: scenario.NodeReady, Unnoticed: true})
		}
	}
}

// bystander is a node that no job may use: there is no such class.
const bystander cluster.NodeID = "bystander"

// tellBystander drains a node that has nothing to do with the others: after them, for
// their drains to have the ids that they have without.
func tellBystander(s *scenario.Scenario, d dice) {
	s.Nodes = append(s.Nodes, scenario.Node{IDs: ids(bystander), Ineligible: true})
	at := steadyBegin + time.Duration(len(s.Events))*steadyApart + d.span(10*time.Millisecond, time.Minute)
	happens(s, at, &scenario.Drain{Nodes: ids(bystander), Deadline: one(d, 0, steadyDeadline)})
}
