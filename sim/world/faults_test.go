package world_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

var rewrite = flag.Bool("rewrite", false, "write the effects of the faults into testdata/faults.txt")

// faultsFile lists runs in which n1 is drained and one fault strikes. Each section begins with the
// fault, and maybe other events. The log of the run follows. The first section has no fault.
const faultsFile = "testdata/faults.txt"

// Each fault has its documented effect, and no other: see the file. No guarantee breaks.
func TestFaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(faultsFile)
	must.NoError(t, err)
	var got strings.Builder
	tested := map[scenario.FaultName]bool{}
	for i, section := range strings.Split(string(text), "== ") {
		if i == 0 {
			got.WriteString(section) // the comment
			continue
		}
		title, _, _ := strings.Cut(section, "\n")
		events := strings.Split(title, "; ")
		name, _, _ := strings.Cut(events[0], " ")
		kind := scenario.FaultName(name).Kind()
		tested[kind.Name] = true
		events[0] = "at 5s fault " + events[0]
		if kind.Name == "" {
			events = events[1:]
		}
		result, log := playDrain(t, kind, append(events, "run for=10m"))
		must.SliceEmpty(t, result.NoEffect, must.Sprint(title))
		fmt.Fprintf(&got, "== %s\n%s\n\n", title, log)
	}
	for _, kind := range scenario.Faults() {
		must.True(t, tested[kind.Name], must.Sprintf("%s has no section", kind.Name))
	}
	if *rewrite {
		must.NoError(t, os.WriteFile(faultsFile, []byte(strings.TrimSuffix(got.String(), "\n")), 0o644))
		return
	}
	must.Eq(t, string(text), strings.TrimSuffix(got.String(), "\n"))
}

// playDrain plays a drain of n1 at ten seconds, with other events, in a world that has what the fault
// needs. It returns the story with the strikes, the terms and the writes of the drainers.
func playDrain(t *testing.T, kind scenario.FaultKind, events []string) (*sim.Result, string) {
	t.Helper()
	lines := []string{"seed 7", "cluster servers=3 commit=10ms", "node n1..n4", "job web count=3 max-parallel=1 kill=20s", "alloc web[0..2] on=n1..n3"}
	if kind.Real {
		lines[1] += " clients=real"
	}
	switch {
	case kind.Name == scenario.NodeDisconnect:
		lines[3] += " lost-after=1h"
	case kind.Data:
		lines[3] += " migrate writes=100"
		lines[4] += "\nclient * copy=10s"
	case kind.Devices:
		lines[2] += " devices=gpu:2"
		lines[3] += " devices=gpu:1"
	case kind.Volumes:
		plugin := "disks"
		if kind.Name == scenario.ControllerHang || kind.Name == scenario.ControllerMute {
			plugin += ":monolith"
		}
		lines[2] += "\nvolume data plugin=disks access=multi-node-multi-writer"
		lines[3] = "job disks type=system plugin=" + plugin + "\n" + lines[3] + " volumes=data\nalloc disks[0..3] on=n1..n4"
	}
	end := events[len(events)-1]
	lines = append(append(append(lines, events[:len(events)-1]...), "at 10s drain n1"), end)
	s, _, err := scenario.Parse("faults.drain", strings.NewReader(strings.Join(lines, "\n")))
	must.NoError(t, err)
	log := runLog{steps: strings.HasPrefix(string(kind.Name), "watch/") || kind.Name == scenario.ViewStale || kind.Name == scenario.LeaderPaused}
	result, err := sim.Play(s, sim.Options{Story: true, Everything: true, Watch: log.observe})
	must.NoError(t, err)
	must.SliceEmpty(t, result.Violations, must.Sprint(events))
	return result, fmt.Sprintf("%s\n-- %s", result.Story, strings.Join(log.lines, "\n-- "))
}

// runLog are lines about strikes, terms, clocks, and the writes of drainers that are not just applied.
type runLog struct {
	lines []string
	// steps adds the steps of drainers.
	steps bool
	// attached are the last nodes with an attached volume.
	attached string
}

func (l *runLog) observe(w *world.World) {
	add := func(format string, args ...any) {
		l.lines = append(l.lines, fmt.Sprintf("%-7s %s", w.Now().Sub(world.Epoch), fmt.Sprintf(format, args...)))
	}
	w.Observe(world.Observer{
		Applied: func(a world.Applied) {
			if m, is := a.Message.(*shims.NodeRegister); is {
				for _, g := range m.Node.Devices {
					add("%s has %v", m.Node.ID, g.Devices)
				}
			}
			if on := attachedTo(w); on != l.attached {
				add("the volume is attached to%s", on)
				l.attached = on
			}
		},
		Struck:    func(s world.Strike) { add("%s strikes %s %s", s.Name, s.Target, s.For) },
		Elected:   func(server int) { add("term %d begins on server %d", w.Term(), server+1) },
		TermEnded: func(term int) { add("term %d has ended", term) },
		ClockSet:  func(term int, ahead time.Duration) { add("the clock of term %d is %s ahead", term, ahead) },
		Proposed: func(p world.Proposal) {
			if !p.Taken {
				add("write %d, %s, is not taken", p.N, p.Words()[1])
			}
		},
		Answered: func(_, n int, a shims.Answer) {
			if a.Outcome != raftwrite.Applied {
				add("write %d: %s", n, a.Outcome)
			}
		},
		Stepped: func(s world.DrainerStep) {
			if l.steps && s.View == nil {
				add("a step reads nothing, woken %t", s.Woken)
			} else if l.steps {
				add("a step reads entry %d of %d, woken %t", s.View.Index(), w.Truth().Index(), s.Woken)
			}
		},
	})
}

// attachedTo returns the nodes with an attached volume.
func attachedTo(w *world.World) (on string) {
	for _, at := range w.Attachments() {
		if at.Attached {
			on += " " + string(at.Node)
		}
	}
	return on
}

// When the faults end, all their effects end, even those with a longer delay: the drain ends after
// the stop times of its clients, the leader stays, and all nodes are ready.
func TestFaults_End(t *testing.T) {
	t.Parallel()
	for _, kind := range scenario.Faults() {
		if kind.Name == scenario.ClientNeverStop || kind.Name == scenario.NodeReturn {
			continue // the effect of the first does not end, and the second needs a lost node
		}
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			fault := "at 5s fault " + string(kind.Name)
			if !kind.Lasts {
				fault += " for=24h"
			}
			if kind.Delays != scenario.NoDelay {
				fault += " delay=1h"
			}
			if kind.On == scenario.OnWrites {
				fault += " on=drainer" // otherwise the request for the drain would fail
			}
			result, log := playDrain(t, kind, []string{fault, "at 20s elect", "run calm=30s for=2h"})
			must.StrContains(t, log, " strikes ")
			ended := false
			for line := range strings.SplitSeq(log, "\n") {
				var d string
				if _, err := fmt.Sscanf(strings.TrimPrefix(line, "-- "), "%s", &d); err != nil {
					continue
				}
				at, err := time.ParseDuration(d)
				must.NoError(t, err)
				ended = ended || strings.Contains(line, "end n1: ") && at < time.Minute
				must.False(t, at > 31*time.Second && strings.Contains(line, "term "), must.Sprint(line))
			}
			must.True(t, ended, must.Sprint(log))
			must.StrNotContains(t, result.End, "left")
		})
	}
}

// The effects of faults on nodes end even if the writes that revert them fail, or if the
// writes that started them are late.
func TestFaults_revert(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node/crash", "node/disconnect", "sched/unplaceable"} {
		for _, failure := range []string{
			"reject", "full", "ambiguous-lost", "ambiguous-applied", "ambiguous-late delay=25s", "slow delay=25s",
		} {
			for _, away := range []time.Duration{11 * time.Second, 40 * time.Second} {
				for _, fails := range []time.Duration{0, away - time.Millisecond} {
					w := newFixture(t, world.Options{Servers: 3, Views: true})
					w.arm(t, armed+fails, fmt.Sprintf("apply/%s count=5 on=operator", failure))
					w.arm(t, armed, fmt.Sprintf("%s delay=%s", name, away))
					w.at(armed+away-time.Millisecond, func() { must.NoError(t, w.Servers.Elect(false)) })
					must.True(t, w.run(t, time.Hour))
					must.Greater(t, 1, len(w.strikes))
					for n := range w.State().Nodes() {
						run := must.Sprintf("%s and from %s %s for %s", name, fails, failure, away)
						must.True(t, n.Reachable(), run)
						must.Eq(t, cluster.NodeEligible, n.SchedulingEligibility, run)
					}
				}
			}
		}
	}
}

// The end of sched/unplaceable does not change the eligibility of nodes that have drained in
// the meantime, and does not create deleted nodes.
func TestFaults_cordonAfterDrains(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.arm(t, armed, "sched/unplaceable delay=1m")
	w.at(2*armed, func() { w.drainNode("n4", 0) }) // n4 is empty
	w.at(2*armed, func() { w.drainNode("n3", 0) })
	w.at(2*armed, func() { w.Operator.Propose(w.Operator.Requests.DeleteNode("n2"), nil) })
	w.at(30*time.Second, func() { w.Operator.Propose(w.Operator.Requests.Cancel("n3", true, false, ""), nil) })
	w.run(t, lasts)
	eligible := map[cluster.NodeID]bool{}
	for n := range w.State().Nodes() {
		eligible[n.ID] = n.SchedulingEligibility == cluster.NodeEligible
	}
	must.Eq(t, map[cluster.NodeID]bool{"n1": true, "n3": true, "n4": false}, eligible)
}

// An election of leader/lose-mid-batch does not come after the faults have ended.
func TestFaults_endWithoutElection(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{"15s", "1h"} {
		w := newFixture(t, world.Options{Servers: 3, Views: true, Commit: exactly(10 * time.Second)})
		w.drain()
		w.arm(t, armed, "leader/lose-mid-batch delay="+delay)
		w.at(drains+15*time.Second, func() { must.NoError(t, w.Faults.End(world.CutOff{})) }) // the marks are in flight
		w.run(t, lasts)
		must.Len(t, 1, w.strikes)
		must.Eq(t, 1, w.Term())
	}
}

// The time moves on even if leader/flap has no delay.
func TestFaults_flapWithoutDelay(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.arm(t, armed, "leader/flap for=1s")
	w.run(t, lasts)
	must.Between(t, 10, len(w.elected), 1000)
	must.Positive(t, when[completions](w))
}

// A single server that is elected again ends its older term.
func TestFaults_singleServer(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.arm(t, armed, "leader/two delay=1m")
	w.at(armed, func() { must.NoError(t, w.Servers.Elect(true)) })
	w.run(t, lasts)
	must.SliceEmpty(t, w.strikes)
	must.Eq(t, armed, w.ended[1])
}

// Each evaluation is one opportunity, even if the scheduler processes it several times.
func TestFaults_evaluationsOnce(t *testing.T) {
	t.Parallel()
	struck := 0
	for seed := range uint64(20) {
		w := newFixture(t, world.Options{Seed: seed + 1})
		w.drain()
		w.arm(t, armed, "apply/slow on=scheduler delay=1h")
		w.arm(t, armed, "sched/fail-eval for=1h p=0.01")
		for i := range 300 { // commits wake the scheduler while the log waits
			w.at(drains+time.Second+time.Duration(i)*time.Millisecond, func() {
				must.NoError(t, w.Setup.Commit(&shims.NodeUpdateStatus{At: w.Now(), Node: "n4", Status: cluster.NodeReady}))
			})
		}
		w.run(t, time.Minute)
		struck += len(w.strikes) - 1
	}
	must.Less(t, 4, struck)
}

// A client that becomes silent does not send the reports that are already pending. The log needs five
// seconds for each entry. The report of n1 waits for the one of n4 until n1 is silent.
func TestFaults_silentClientSendsNoPendingReport(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Commit: exactly(5 * time.Second)})
	w.drain()
	const planned = drains + 3*5*time.Second
	w.arm(t, planned+3*time.Second, "node/crash on=n1 delay=8s")
	w.run(t, lasts)
	must.Eq(t, planned, when[plan](w))
	must.Eq(t, planned+6*time.Second, w.reported("n4", cluster.ClientRunning))
	must.Eq(t, planned+16*time.Second, w.reported("n1", cluster.ClientComplete))
}

// If the fault has no delay, the world draws the delay of a late write from its own range. It
// draws none for other writes.
func TestFaults_drawnLateness(t *testing.T) {
	t.Parallel()
	from := scenario.Range{Min: time.Second, Max: 30 * time.Second}
	drawn := map[time.Duration]bool{}
	for seed := range uint64(8) {
		w := newFixture(t, world.Options{Seed: seed, Late: from})
		w.arm(t, armed, "apply/slow on=marks")
		w.drain()
		w.run(t, lasts)
		late := when[marks](w) - first[marks](w).at - commits
		must.Between(t, from.Min, late, from.Max)
		if seed == 0 { // without a seed it is the minimum
			must.Eq(t, from.Min, late)
		}
		drawn[late] = true
	}
	must.Greater(t, 6, len(drawn))
}
