package swarm

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// trait is a property that a scenario may have: a kind of job, a kind of event, a fault.
type trait string

// The traits of the state in which a world begins.
const (
	manyGroups   trait = "jobs/groups"     // jobs of several groups
	namespaces   trait = "jobs/namespaces" // the same id in several namespaces
	batchWork    trait = "jobs/batch"
	systemJobs   trait = "jobs/system"
	sysbatchJobs trait = "jobs/sysbatch"
	plugins      trait = "jobs/plugins"
	disks        trait = "jobs/disks"   // sticky and migrating
	zeroes       trait = "jobs/zero"    // counts and limits of zero
	lateJobs     trait = "jobs/late"    // registered while drains run
	longKill     trait = "jobs/kill"    // stop times of a minute and more
	surges       trait = "jobs/surge"   // replacements start before allocations stop
	missing      trait = "allocs/few"   // fewer than the count
	unhealthy    trait = "allocs/bad"   // judged unhealthy
	unjudged     trait = "allocs/fresh" // not judged yet, or overdue
	canaries     trait = "allocs/canary"
	stopping     trait = "allocs/stopping" // stopped and still running
	othersMarks  trait = "allocs/marked"   // by an operator
	ended        trait = "allocs/ended"    // ended, some replaced
	orphans      trait = "allocs/orphan"   // on a node that does not exist
	tight        trait = "nodes/tight"     // little room for replacements
	classes      trait = "nodes/classes"   // some jobs are limited to one class
	oddNodes     trait = "nodes/odd"       // ineligible, initializing, absent
	slowClients  trait = "clients/slow"
	heavyTail    trait = "clients/tail" // some groups or nodes far slower than the others
	neverStop    trait = "clients/never-stop"
	neverGood    trait = "clients/never-good" // replacements that are never healthy, or not judged
	slowWays     trait = "cluster/slow"       // between servers, store and scheduler
	tunedDrainer trait = "drainer/tuned"
	policies     trait = "drainer/policies"
)

// The traits of events.
const (
	drainAll        trait = "drain/all"      // every node
	drainTogether   trait = "drain/together" // at one time, or nearly
	drainUpdate     trait = "drain/update"
	drainCancel     trait = "drain/cancel"
	drainAgain      trait = "drain/again"
	drainRepeat     trait = "drain/repeat"  // the same request again, with a key or without
	drainPause      trait = "drain/pause"   // one, or all drains
	drainConfirm    trait = "drain/confirm" // by an operator, whether the node's tasks run or not
	ignoreSystem    trait = "drain/ignore-system"
	jobEdit         trait = "job/edit" // another max_parallel
	jobScale        trait = "job/scale"
	jobGroups       trait = "job/groups" // removed, or renamed
	jobRegister     trait = "job/register"
	jobStop         trait = "job/stop"
	jobPurge        trait = "job/purge"
	allocExit       trait = "alloc/exit"
	allocStop       trait = "alloc/stop"
	allocPlace      trait = "alloc/place" // late, on a draining node
	nodeDown        trait = "node/down"
	nodeAway        trait = "node/away" // disconnected
	nodeDelete      trait = "node/delete"
	nodeRegister    trait = "node/register"
	nodeEligible    trait = "node/eligible"
	volumeDetach    trait = "volume/detach" // by an operator, most of them by force
	volumeChange    trait = "volume/change" // registered again, or deregistered and registered
	raceMarks       trait = "race/marks"    // an event just before an entry of marks
	raceCompletions trait = "race/completion"
	racePlans       trait = "race/plan"
	raceReports     trait = "race/report"
	elections       trait = "leader/elect"
	pauses          trait = "leader/pause"
	clockSkew       trait = "clock/skew"
	clockStep       trait = "clock/step"
	restores        trait = "store/restore"
	forgets         trait = "leader/forget"
)

// traits returns every trait, faults last.
func traits() []trait {
	all := []trait{
		manyGroups, namespaces, batchWork, systemJobs, sysbatchJobs, plugins, disks, zeroes, lateJobs, longKill, surges,
		missing, unhealthy, unjudged, canaries, stopping, othersMarks, ended, orphans, tight, classes, oddNodes,
		slowClients, heavyTail, neverStop, neverGood, slowWays, tunedDrainer, policies,
		drainAll, drainTogether, drainUpdate, drainCancel, drainAgain, drainRepeat, drainPause, drainConfirm, ignoreSystem,
		jobEdit, jobScale, jobGroups, jobRegister, jobStop, jobPurge, allocExit, allocStop, allocPlace,
		nodeDown, nodeAway, nodeDelete, nodeRegister, nodeEligible, volumeDetach, volumeChange,
		raceMarks, raceCompletions, racePlans, raceReports, elections, pauses, clockSkew, clockStep, restores, forgets,
	}
	for _, f := range scenario.Faults() {
		all = append(all, faultTrait(f.Name))
	}
	return all
}

// faultTrait returns the trait of a fault. A fault that performs an operation has a prefix, because
// the operation at a set time is a trait of its own.
func faultTrait(name scenario.FaultName) trait {
	if name.Kind().Operates {
		return trait("fault/" + name)
	}
	return trait(name)
}

// character holds the traits of a scenario, each with the probability that it shows at one of its
// places, from 0.1 to 1.
type character map[trait]float64

// drawCharacter draws the traits of a scenario. It draws their share first, half of them on average.
// Most bugs need one or two traits, and other traits would hide them.
func (m *draft) drawCharacter() {
	many := m.dice("character").share(15, 85)
	for _, t := range traits() {
		kind := scenario.FaultName(t).Kind()
		volumes := kind.Volumes || t == volumeDetach || t == volumeChange
		if kind.Real && !m.real() || kind.Devices && !m.equipped || volumes && !m.stored || kind.Data && !m.moving {
			continue
		}
		d, share := m.dice("trait/"+string(t)), many
		if scenario.FaultName(t).Kind().Real {
			share = max(many, oddsOfRealFaults)
		}
		if t == surges {
			share = oddsOfSurge
		}
		if d.odds(share) {
			m.character[t] = one(d, 0.1, 0.2, 0.4, 0.7, 1)
		}
	}
}

// has reports whether the scenario has the trait.
func (m *draft) has(t trait) bool { return m.character[t] > 0 }

// shows draws whether the trait shows at one of its places.
func (m *draft) shows(d dice, t trait) bool { return d.odds(m.character[t]) }

// times draws the number of events of a trait.
func (m *draft) times(d dice, t trait) int {
	if !m.has(t) {
		return 0
	}
	return d.between(1, 1+int(m.character[t]*float64(m.shape.times)))
}

// often draws the number of events that cost many entries. In small worlds it is mostly zero, so
// that a scenario ends sooner and more scenarios are played.
func (m *draft) often(d dice, t trait) int {
	if m.shape.happens < 1 && !d.odds(m.shape.happens) {
		return 0
	}
	return m.times(d, t)
}

// proseWidth bounds a line of prose.
const proseWidth = 90

// prose lists the traits of the scenario.
func (m *draft) prose(size Size) []string {
	var all []string
	for _, t := range traits() {
		if m.has(t) {
			all = append(all, string(t))
		}
	}
	return append([]string{fmt.Sprintf("Seed %d of the %s swarm. It may have:", m.seed, size)}, scenario.Wrap(strings.Join(all, " "), proseWidth)...)
}
