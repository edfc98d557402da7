package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// facts are the events and the violations of one run. [Judge] updates them, and the judges of
// the single guarantees share them.
type facts struct {
	options Options
	dump    dump
	// now is the world's time of the last event. index is the index of the newest entry.
	now   time.Time
	index uint64
	// tables is the state after the last entry.
	tables *tables
	// events counts the events besides steps.
	events uint64
	// latest is the latest time of all entries and all clocks.
	latest time.Time

	// drains are all drains of the run, also the ended ones.
	drains map[cluster.DrainID]*drain
	terms  map[int]*term
	leader *term // the newest term, or nil
	// idle are the entries with an item that had no effect, by index. An entry leaves when
	// the drainer gets its answer.
	idle map[uint64]idleItem

	// stills counts the judged silences with a drainer that was up to date.
	stills int
	Findings
}

// judgeVerdicts compares the verdicts of an entry's reports with the rows after it. An entry may hold
// several reports of an allocation, in their order.
func (j *itemJudge) judgeVerdicts(e *entry, m *shims.AllocClientUpdate) {
	var order []*alloc
	verdicts := make(map[cluster.AllocID]*reported)
	for _, r := range m.Reports {
		before := j.tables.allocs[r.Alloc]
		if before == nil || !before.live() || before.node.id != r.Node {
			continue
		}
		v := verdicts[r.Alloc]
		if v == nil {
			v = &reported{since: unhealthySince(before.row)}
			v.healthy, v.exists = opinion.Verdict(before.row)
			verdicts[r.Alloc], order = v, append(order, before)
		}
		v.report(r, m.At)
	}
	for _, before := range order {
		after, v := e.After.Alloc(before.id()), verdicts[before.id()]
		if after == nil {
			continue
		}
		if healthy, exists := opinion.Verdict(after); healthy != v.healthy || exists != v.exists {
			j.find(VerdictLost, of(before), "its client reported healthy=%t", v.healthy)
		}
		if got := unhealthySince(after); !got.Equal(v.since) {
			j.find(WronglyHeld, of(before), "the row has it unhealthy since %s and not since %s", got, v.since)
		}
	}
}

// reported is the verdict on an allocation after reports of its client.
type reported struct {
	healthy, exists bool
	// since is since when an allocation that was healthy is unhealthy, or zero. Only the report that changes
	// the verdict to false begins that time, at the time of its entry, and a good verdict ends it.
	since time.Time
	// ended: later reports change no verdict.
	ended bool
}

// report adds a report in an entry of a time.
func (v *reported) report(r cluster.AllocReport, at time.Time) {
	switch {
	case v.ended || r.Healthy == nil:
	case *r.Healthy:
		v.healthy, v.exists, v.since = true, true, time.Time{}
	default:
		if v.healthy {
			v.since = at
		}
		v.healthy, v.exists = false, true
	}
	switch r.ClientStatus {
	case cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost:
		v.ended = true
	}
}

func unhealthySince(a *cluster.Allocation) time.Time {
	if a.DeploymentStatus == nil {
		return time.Time{}
	}
	return a.DeploymentStatus.UnhealthySince
}
