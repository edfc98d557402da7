package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Faults are the armed faults, and the effects that they still have.
type Faults struct {
	world *World
	armed []*fault
	// undos end the effects that last until a time, or until all faults end.
	undos []*undo
	// ended counts the calls of End. pending counts the effects that have not started yet.
	ended, pending int
	// evals are the evaluations at which sched/fail-eval had its opportunity.
	evals map[cluster.EvalID]bool
}

// fault is an armed fault; target describes an opportunity.
type (
	fault  = setting.Armed
	target = setting.Target
)

// undo ends an effect of a fault.
type undo struct{ do func() error }

// Strike is one strike of a fault.
type Strike struct {
	Name   scenario.FaultName
	Target string // or empty
	At     time.Duration
	// For is the duration of the effect, or its delay.
	For time.Duration
}

// CutOff are the servers and nodes that stay broken when all faults end. The caller leaves a
// majority of the servers, and the nodes that the drains need.
type CutOff struct {
	// Servers are the numbers of servers, from 0, that stay paused and never lead again.
	Servers []int
	// Nodes are nodes whose clients stay silent.
	Nodes []cluster.NodeID
}

// Arm arms a fault. Faults that need no opportunity strike at once.
func (fs *Faults) Arm(f scenario.Fault) error {
	armed, err := setting.Arm(f, fs.world.now)
	if err != nil {
		return err
	}
	return fs.Add(armed)
}

// Add adds an armed fault. The caller may read later whether it has struck.
func (fs *Faults) Add(armed *setting.Armed) error {
	if kind := armed.Name.Kind(); kind.Lasts { // it strikes now or never
		if kind.Real && !fs.world.options.RealClients {
			return nil
		}
		return fs.strikeNow(armed)
	}
	fs.armed = append(fs.armed, armed)
	if armed.Name == scenario.LeaderFlap {
		fs.world.Servers.flap()
	}
	return nil
}

// strikeNow makes a fault strike that has no other opportunity.
func (fs *Faults) strikeNow(by *fault) error {
	clients := fs.world.clients
	switch by.Name {
	case scenario.NodeCrash, scenario.NodeDisconnect, scenario.NodeReboot, scenario.NodeFreeze:
		clients.startOutage(by)
	case scenario.DiskFull:
		clients.fillDisk(by)
	case scenario.RecordLose, scenario.DiskWipe:
		clients.loseRecords(by)
	case scenario.DeviceSick, scenario.DeviceVanish, scenario.DeviceRename, scenario.DeviceMute:
		return clients.changeDevices(by)
	case scenario.SchedUnplaceable:
		fs.cordonAll(by)
	}
	return nil
}

// armedAny reports whether a fault of the name is armed.
func (fs *Faults) armedAny(name scenario.FaultName) bool {
	return slices.ContainsFunc(fs.armed, func(a *fault) bool { return a.Name == name })
}

// strike reports whether a fault of the name strikes at this opportunity. The first armed fault
// strikes that matches the target and passes the draw of its probability. delay is drawn from
// its range.
func (fs *Faults) strike(name scenario.FaultName, t target) (delay time.Duration, strikes bool) {
	for _, f := range fs.armed {
		if f.Name == name && f.Hits(t) && !f.Ended(fs.world.now) && fs.drawStrike(f, t) {
			return fs.recordStrike(f, t), true
		}
	}
	return 0, false
}

// drawStrike draws, with the probability of a fault, whether the fault strikes. Each allocation
// has its own stream, so that an additional allocation changes nothing for the others.
func (fs *Faults) drawStrike(f *fault, t target) bool {
	if f.Certain() {
		return true
	}
	name := "fault/" + string(f.Name)
	if t.Alloc != nil {
		return Stream(fs.world.options.Seed, name+"/"+t.String()).Float64() < f.Probability
	}
	return fs.world.chance.stream(name).Float64() < f.Probability
}

// recordStrike records a strike and draws its delay.
func (fs *Faults) recordStrike(f *fault, t target) time.Duration {
	w := fs.world
	f.Strike()
	w.counts.endStreak()
	delay := w.chance.draw("delay/"+string(f.Name), f.Delay)
	s := Strike{Name: f.Name, Target: t.String(), At: w.now.Sub(Epoch), For: delay}
	w.hash.bytes([]byte(string(s.Name) + s.Target))
	w.observer.Struck(s)
	if f.Ended(w.now) {
		fs.armed = slices.DeleteFunc(fs.armed, func(o *fault) bool { return o == f })
	}
	return delay
}

// after runs the effect of a fault after a delay, unless all faults have ended by then.
func (fs *Faults) after(d time.Duration, do func() error) {
	ended := fs.ended
	fs.pending++
	fs.world.At(fs.world.now.Add(d), func() error {
		fs.pending--
		if fs.ended != ended {
			return nil
		}
		return do()
	})
}

// undoAfter ends the effect of a fault after a delay, or when all faults end.
func (fs *Faults) undoAfter(d time.Duration, do func() error) {
	u := &undo{do}
	fs.undos = append(fs.undos, u)
	fs.world.At(fs.world.now.Add(d), func() error { return fs.undo(u) })
}

// undo ends an effect, once.
func (fs *Faults) undo(u *undo) error {
	i := slices.Index(fs.undos, u)
	if i < 0 {
		return nil
	}
	fs.undos = slices.Delete(fs.undos, i, i+1)
	return u.do()
}

// End ends all faults and their effects. Paused servers run, deposed leaders step
// down, and late writes and wake-ups arrive. Allocations keep the behaviour that a
// fault gave them. The servers and nodes of out stay broken.
//
// End returns an error if out leaves no majority of the servers, or if an election fails.
func (fs *Faults) End(out CutOff) error {
	w := fs.world
	if err := w.Servers.checkMinority(out.Servers); err != nil {
		return err
	}
	fs.armed = nil
	fs.ended++
	if err := w.Servers.cutOff(out.Servers); err != nil {
		return err
	}
	w.Servers.resume()
	for _, id := range out.Nodes {
		w.clients.cutOff(id)
	}
	w.Log.endDelays()
	leader := w.Servers.leader
	leader.drainerAlarm.deliverBy(w.now.Add(w.options.Wake.Max))
	leader.schedulerAlarm.deliverBy(w.now.Add(w.options.Schedule.Max))
	for len(fs.undos) > 0 {
		if err := fs.undo(fs.undos[0]); err != nil {
			return err
		}
	}
	return nil
}

// Active reports whether an armed fault may still strike, a fault has an effect, a deposed
// leader has not stepped down, or a server is paused. Wrong clocks and the
// behaviour of existing allocations do not count.
func (fs *Faults) Active() bool {
	w := fs.world
	return slices.ContainsFunc(fs.armed, func(f *fault) bool { return !f.Ended(w.now) }) ||
		len(fs.undos) > 0 || fs.pending > 0 || len(w.Servers.deposed) > 0 ||
		slices.ContainsFunc(w.Servers.all, func(s *server) bool { return s.paused(w.now) })
}

// checkMinority returns an error if the servers are not a minority.
func (ss *Servers) checkMinority(numbers []int) error {
	if 2*len(numbers) >= len(ss.all) && len(numbers) > 0 {
		return fmt.Errorf("cutting off %d of %d servers: no server could lead", len(numbers), len(ss.all))
	}
	for _, number := range numbers {
		if number < 0 || number >= len(ss.all) {
			return fmt.Errorf("cutting off server %d: there are %d, from 0", number, len(ss.all))
		}
	}
	return nil
}

// cutOff pauses servers forever. If one of them leads, another server takes over, and the old
// leader never steps down.
func (ss *Servers) cutOff(numbers []int) error {
	for _, number := range numbers {
		s := ss.all[number]
		s.cutOff, s.pausedUntil = true, ss.world.now.Add(Never)
	}
	if ss.leader.server.cutOff {
		return ss.Elect(false)
	}
	return nil
}

// resume ends the pauses of all servers that are not cut off, and makes the deposed leaders
// among them step down.
func (ss *Servers) resume() {
	for _, s := range ss.all {
		if !s.cutOff {
			s.pausedUntil = time.Time{}
		}
	}
	for _, l := range slices.Clone(ss.deposed) {
		if !l.server.cutOff {
			l.stepDown()
		}
	}
}

// cordonAll makes all eligible nodes ineligible for the delay of a fault.
func (fs *Faults) cordonAll(by *fault) {
	var cordons []*change
	state := fs.world.Truth()
	for n := range state.Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			cordons = append(cordons, fs.cordon(n.ID, state.Index()))
		}
	}
	if len(cordons) == 0 || !fs.drawStrike(by, target{}) {
		return
	}
	d := fs.recordStrike(by, target{})
	for _, c := range cordons {
		_ = c.start() // it never fails
	}
	fs.undoAfter(d, func() error {
		for _, c := range cordons {
			_ = c.end() // it never fails
		}
		return nil
	})
}

// cordon returns a change that makes a node ineligible. If a drain of the node ends after
// that index, reverting the change does nothing: the drain decided the eligibility.
func (fs *Faults) cordon(id cluster.NodeID, since uint64) *change {
	w := fs.world
	return &change{
		operator: w.Operator,
		apply: func() shims.Message {
			n := w.Truth().Node(id)
			if n == nil || n.SchedulingEligibility == cluster.NodeIneligible {
				return nil
			}
			return w.Operator.Requests.Eligibility(id, cluster.NodeIneligible)
		},
		revert: func() shims.Message {
			state := w.Truth()
			n := state.Node(id)
			if n == nil || n.Draining() || n.SchedulingEligibility == cluster.NodeEligible {
				return nil
			}
			for d := range state.DrainsByNode(id) {
				if d.EndIndex > since {
					return nil
				}
			}
			return w.Operator.Requests.Eligibility(id, cluster.NodeEligible)
		},
	}
}
