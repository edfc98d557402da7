package simclient_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// checks is the number of random worlds for each property. The command line and the environment of rapid can
// replace it.
const checks = "1000"

func TestMain(m *testing.M) {
	flag.Parse()
	_, chosen := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// twin is a simple model of one allocation. It keeps a few times, and computes the condition from
// them in each second.
type twin struct {
	// first is when a client that reaches the servers first read it. ran: its row then had the status
	// running.
	first time.Time
	ran   bool
	// data is when its client has read the end of its predecessor, ordered when it has read the order
	// to stop; zero if not. stopped: its first row contained the order.
	data, ordered time.Time
	stopped       bool
	// healthy is the verdict of an earlier fleet, or nil.
	healthy *bool
	// late: a report of an earlier fleet was applied now. lateVerdict is the verdict in it, or
	// nil: it stands until the task has one of its own.
	late        bool
	lateVerdict *bool
}

// read updates the twin in a second in which its client reaches the servers.
func (p *twin) read(s *state, a *cluster.Allocation, now time.Time) {
	if p.first.IsZero() {
		p.first, p.ran, p.stopped = now, a.ClientStatus != cluster.ClientPending, a.ServerTerminal()
		if a.HasVerdict() {
			p.healthy = a.DeploymentStatus.Healthy
		}
	}
	if p.ordered.IsZero() && a.ServerTerminal() {
		p.ordered = now
		if p.stopped && p.ran && a.StoppedAt.Before(now) {
			p.ordered = a.StoppedAt
		}
	}
	// An allocation that must stop copies no data.
	if before := s.allocs[a.PreviousAllocation]; p.data.IsZero() && p.ordered.IsZero() && (before == nil || before.ClientTerminal()) {
		p.data = now
	}
}

// condition returns the condition of the allocation; the verdict counts while it runs.
func (p *twin) condition(a *cluster.Allocation, b simclient.Behaviour, now time.Time) (status cluster.ClientStatus, verdict string) {
	const forever = 1000 * time.Hour
	never := p.first.Add(forever)
	add := func(t time.Time, d time.Duration) time.Time {
		if d == simclient.Never || t.Equal(never) {
			return never
		}
		return t.Add(d)
	}
	runs := p.first
	switch {
	case p.ran:
	case p.stopped:
		runs = never
	case a.PreviousAllocation != "" && a.Job.TaskGroups[0].EphemeralDisk.Migrate:
		runs = never
		if !p.data.IsZero() {
			runs = add(add(p.data, b.Copy), b.Start)
		}
	default:
		runs = add(runs, b.Start)
	}

	ends := never
	if a.Job.Type.ToCompletion() {
		ends = add(runs, b.Run)
	}
	ordered := never
	switch {
	case p.ordered.IsZero():
	case runs.After(p.ordered) && !p.ran:
		return cluster.ClientComplete, ""
	default:
		ordered = p.ordered
		stops := never
		if b.Stop != simclient.Never {
			stops = add(ordered, min(b.Stop, 5*time.Second))
		}
		if stops.Before(ends) {
			ends = stops
		}
	}
	switch {
	case !now.Before(ends):
		return cluster.ClientComplete, ""
	case now.Before(runs):
		return cluster.ClientPending, ""
	}
	return cluster.ClientRunning, p.verdict(a, b, runs, ordered, now)
}

func (p *twin) verdict(a *cluster.Allocation, b simclient.Behaviour, runs, ordered, now time.Time) string {
	judged := b.Verdict
	switch {
	case p.healthy != nil:
		return p.changed(b, *p.healthy, p.first, ordered, now)
	case a.Job.Type.ToCompletion() || judged == simclient.Never || p.stopped:
		return "none"
	case judged == 0 && b.Unhealthy:
		judged = time.Minute
	case judged == 0:
		judged = 10 * time.Second
	}
	at := runs.Add(judged)
	if at.After(now) || at.After(ordered) {
		return "none"
	}
	return p.changed(b, !b.Unhealthy, at, ordered, now)
}

// changed is the verdict after its changes: each once, and none after the order to stop.
func (p *twin) changed(b simclient.Behaviour, good bool, at, ordered, now time.Time) string {
	waits := map[bool]time.Duration{true: b.Worsen, false: b.Recover}
	for range waits {
		wait := waits[good]
		if wait == 0 || wait == simclient.Never || p.stopped {
			break
		}
		if at = at.Add(wait); at.After(now) || at.After(ordered) {
			break
		}
		good = !good
	}
	return fmt.Sprint(good)
}

// chaos is a world with random events, and with the twins of its allocations.
type chaos struct {
	*world
	rt    *rapid.T
	twins map[cluster.AllocID]*twin
	// lost are the allocations that the servers gave up as lost.
	lost map[cluster.AllocID]bool
	// last is when the last step was.
	last time.Time
	// late are batches of earlier fleets that are still in flight.
	late []*flight
}

var (
	someNodes     = rapid.SampledFrom([]cluster.NodeID{"n0", "n1", "n2"})
	someDurations = rapid.Map(rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20, -1}), func(n int) time.Duration {
		if n < 0 {
			return simclient.Never
		}
		return seconds(n)
	})
	someFates = rapid.SampledFrom([]fate{taken, taken, taken, failed, appliedButFailed, full})
)

// Batches fail and fleets are replaced at random. In the end the rows have the condition of every
// allocation.
//
//race:skip one goroutine
func TestFleet_random(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := &chaos{world: newWorld(rt), rt: rt, twins: map[cluster.AllocID]*twin{}, lost: map[cluster.AllocID]bool{}}
		c.fate = func([]cluster.AllocReport) fate { return someFates.Draw(rt, "fate") }
		c.restart()
		for _, n := range []cluster.NodeID{"n0", "n1", "n2"} {
			c.node(n, cluster.NodeReady)
		}
		for range rapid.IntRange(5, 40).Draw(rt, "seconds") {
			for range rapid.IntRange(0, 3).Draw(rt, "entries") {
				c.event()
			}
			if len(c.late) > 0 && rapid.Bool().Draw(rt, "late") {
				c.landLate()
			}
			c.held = rapid.IntRange(0, 3).Draw(rt, "held") == 0
			c.second()
		}
		c.calm()
		for id, a := range c.state.allocs {
			c.judge(id, a)
		}
	})
}

// event makes one random event.
func (c *chaos) event() {
	switch rapid.SampledFrom([]string{"place", "place", "stop", "stop", "mark", "give up", "purge", "node", "restart", "back"}).Draw(c.rt, "entry") {
	case "place":
		c.placeAny()
	case "stop":
		c.some(func(id cluster.AllocID) { c.stop(id) })
	case "mark":
		c.some(func(id cluster.AllocID) {
			c.edit(id, func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
		})
	case "give up":
		status := rapid.SampledFrom([]cluster.ClientStatus{cluster.ClientUnknown, cluster.ClientLost}).Draw(c.rt, "status")
		c.some(func(id cluster.AllocID) {
			if a := c.state.allocs[id]; !a.ClientTerminal() && !c.state.nodes[a.NodeID].Reachable() {
				c.edit(id, func(a *cluster.Allocation) {
					if a.ClientStatus = status; status == cluster.ClientLost && !a.ServerTerminal() {
						a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, c.now
					}
				})
				c.lost[id] = c.lost[id] || status == cluster.ClientLost
			}
		})
	case "purge":
		c.some(func(id cluster.AllocID) {
			c.purge(id)
			delete(c.twins, id)
		})
	case "node":
		c.node(someNodes.Draw(c.rt, "node"), rapid.SampledFrom([]cluster.NodeStatus{
			cluster.NodeReady, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected,
		}).Draw(c.rt, "status"))
	case "restart":
		if c.flight != nil {
			c.late = append(c.late, c.flight)
		}
		c.restart()
		clear(c.twins)
	case "back":
		c.now = c.now.Add(-seconds(rapid.IntRange(1, 100).Draw(c.rt, "back")))
	}
}

// rewind moves the times of the twins after the clock was set back.
func (c *chaos) rewind() {
	if !c.now.Before(c.last) {
		return
	}
	for _, p := range c.twins {
		for _, at := range []*time.Time{&p.first, &p.data, &p.ordered} {
			if !at.IsZero() {
				*at = at.Add(c.now.Sub(c.last))
			}
		}
	}
}

// some calls do with an allocation, if there is one.
func (c *chaos) some(do func(cluster.AllocID)) {
	if ids := slices.Sorted(maps.Keys(c.state.allocs)); len(ids) > 0 {
		do(rapid.SampledFrom(ids).Draw(c.rt, "alloc"))
	}
}

func (c *chaos) placeAny() {
	j := jobOf(rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem}).Draw(c.rt, "type"))
	j.TaskGroups[0].EphemeralDisk.Migrate = rapid.Bool().Draw(c.rt, "data")
	b := simclient.Behaviour{
		Start: someDurations.Draw(c.rt, "start"), Copy: someDurations.Draw(c.rt, "copy"), Verdict: someDurations.Draw(c.rt, "verdict"),
		Run: someDurations.Draw(c.rt, "run"), Stop: someDurations.Draw(c.rt, "stop"), Unhealthy: rapid.Bool().Draw(c.rt, "unhealthy"),
		Worsen: someDurations.Draw(c.rt, "worsen"), Recover: someDurations.Draw(c.rt, "recover"),
	}
	var before cluster.AllocID
	if rapid.Bool().Draw(c.rt, "replacement") {
		c.some(func(id cluster.AllocID) { before = id })
	}
	id := cluster.AllocID(fmt.Sprint("a", len(c.behaviours)))
	c.place(id, someNodes.Draw(c.rt, "node"), j, b, replaces(before))
}

// landLate lands the first of the late batches.
func (c *chaos) landLate() {
	f := c.late[0]
	c.late = c.late[1:]
	before := c.state
	c.land(f)
	for _, r := range f.reports {
		c.fleet.Changed(r.Node)
		if p := c.twins[r.Alloc]; p != nil && c.state.allocs[r.Alloc] != before.allocs[r.Alloc] {
			p.late = true
			if r.Healthy != nil {
				p.lateVerdict = r.Healthy
			}
			if r.ClientStatus == cluster.ClientComplete {
				delete(c.twins, r.Alloc) // it ended under that fleet
			}
		}
	}
}

// second steps the fleet, updates the twins, and advances by a second.
func (c *chaos) second() {
	c.rewind()
	before := c.state
	c.readAll(before, before)
	c.settle()
	c.readAll(before, c.state)
	c.last = c.now
	c.now = c.now.Add(time.Second)
}

// readAll updates the twins of the allocations that lived before from a state.
func (c *chaos) readAll(before, s *state) {
	for id, a := range before.allocs {
		if a.ClientTerminal() || !before.nodes[a.NodeID].Reachable() {
			continue
		}
		if c.twins[id] == nil {
			c.twins[id] = &twin{}
		}
		p := c.twins[id]
		a = s.allocs[id]
		if status, _ := p.condition(a, c.behaviours[id], c.now); p.late && status == cluster.ClientPending && a.ClientStatus == cluster.ClientRunning {
			p.first, p.ran = c.now, true
		}
		p.late = false
		p.read(s, a, c.now)
	}
}

// calm ends all faults, and waits until nothing is due.
func (c *chaos) calm() {
	for _, n := range []cluster.NodeID{"n0", "n1", "n2"} {
		c.node(n, cluster.NodeReady)
	}
	for len(c.late) > 0 {
		c.landLate()
	}
	c.fate, c.held = nil, false
	for range 1000 {
		if c.second(); c.wakeAt.IsZero() {
			return
		}
	}
	c.rt.Fatal("the fleet does not come to rest")
}

// judge compares the row of an allocation with its twin.
func (c *chaos) judge(id cluster.AllocID, a *cluster.Allocation) {
	if a.ClientTerminal() && c.twins[id] == nil {
		return // it had ended before the fleet began
	}
	if c.lost[id] { // its client reports the end when it is back, unless it cannot be killed
		must.True(c.rt, a.ClientStatus == cluster.ClientComplete || a.ClientStatus == cluster.ClientLost && c.behaviours[id].Stop == simclient.Never,
			must.Sprintf("%s: %s with %+v, lines %q", id, a.ClientStatus, c.behaviours[id], c.lines))
		return
	}
	status, verdict := c.twins[id].condition(a, c.behaviours[id], c.now)
	must.Eq(c.rt, status, a.ClientStatus, must.Sprintf("%s: %+v of %+v, lines %q", id, *c.twins[id], a, c.lines))
	if status != cluster.ClientRunning {
		return
	}
	if late := c.twins[id].lateVerdict; verdict == "none" && late != nil {
		verdict = fmt.Sprint(*late)
	}
	written := "none"
	if a.HasVerdict() {
		written = fmt.Sprint(a.JudgedHealthy())
	}
	must.Eq(c.rt, verdict, written, must.Sprintf("%s: %+v of %+v with %+v, lines %q", id, *c.twins[id], a, c.behaviours[id], c.lines))
}
