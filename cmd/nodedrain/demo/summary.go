package demo

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// SummaryVersion is the version of [Summary] in JSON. It changes when a field changes its
// meaning or is removed, not when a field is added.
const SummaryVersion = 2

// Summary is the result of a run. Its field names in JSON are stable. Times are real, in
// seconds; a list is never null.
type Summary struct {
	Version int `json:"version"`
	// OK says that there are no failures.
	OK       bool     `json:"ok"`
	Failures []string `json:"failures"`

	Cluster ClusterSummary `json:"cluster"`
	Servers int            `json:"servers"`
	Seed    uint64         `json:"seed"`
	// TimeScale is how many simulated seconds passed in a real one.
	TimeScale float64 `json:"time_scale"`
	// Seconds is how long the run took until every drain had ended, or until the timeout.
	Seconds float64 `json:"seconds"`

	// LeaderKill is null if no leader was killed.
	LeaderKill *LeaderKill `json:"leader_kill"`
	// Drains are in the order in which they started. Groups are the groups of service jobs
	// with an allocation on a draining node, by name.
	Drains []DrainSummary `json:"drains"`
	Groups []GroupSummary `json:"groups"`
	// Findings are the first hundred findings of the witness.
	Findings []string `json:"findings"`
}

// ClusterSummary is the cluster of the run.
type ClusterSummary struct {
	Origin string `json:"origin"`
	Nodes  int    `json:"nodes"`
	Jobs   int    `json:"jobs"`
	// Wanted counts the allocations of jobs with a count, Placed those of them that ran or
	// had ended when the drains started.
	Wanted int `json:"wanted"`
	Placed int `json:"placed"`
	// Unplaced holds the allocations that no node has capacity for. For a job that runs on
	// every node it counts the nodes; those are not in Wanted.
	Unplaced []UnplacedSummary `json:"unplaced"`
	// LoadSeconds is how long it took to read or generate the cluster, SetupSeconds to
	// register it and to start its allocations.
	LoadSeconds  float64 `json:"load_seconds"`
	SetupSeconds float64 `json:"setup_seconds"`
}

// UnplacedSummary counts the unplaced allocations of one group.
type UnplacedSummary struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// LeaderKill is the kill of the leader.
type LeaderKill struct {
	Server    string `json:"server"`
	NewLeader string `json:"new_leader"`
	// AtSeconds is when it was killed, counted from the first drain.
	AtSeconds float64 `json:"at_seconds"`
	// DrainsRunning and AllocationsLeft are the progress in its state.
	DrainsRunning   int `json:"drains_running"`
	AllocationsLeft int `json:"allocations_left"`
	// ElectionSeconds is the time until the next leader, zero if there was none.
	ElectionSeconds float64 `json:"election_seconds"`
}

// DrainSummary is the result of one drain.
type DrainSummary struct {
	Node string `json:"node"`
	ID   string `json:"id"`
	// DeadlineSeconds is zero for a drain without a deadline.
	DeadlineSeconds float64 `json:"deadline_seconds"`
	// Outcome is empty for a drain that did not end.
	Outcome string  `json:"outcome"`
	Seconds float64 `json:"seconds"`
	// ToLeave is the most allocations that had to leave at one time.
	ToLeave int `json:"to_leave"`
	// Marked counts its marks by class.
	Marked map[string]int `json:"marked"`
	// Moved counts the allocations that have stopped and are replaced, Stopped those without
	// a replacement, StillStopping those that had not stopped when the drain ended.
	Moved         int `json:"moved"`
	Stopped       int `json:"stopped"`
	StillStopping int `json:"still_stopping"`
	// Unconfirmed counts the allocations of an ended drain whose end nothing confirms: their tasks
	// may still run on the node.
	Unconfirmed int `json:"unconfirmed"`
}

// GroupSummary is the witness's counts for one group.
type GroupSummary struct {
	Group      string `json:"group"`
	PacedMarks int    `json:"paced_marks"`
	// Count is how many allocations the group wanted, Limit the least number of healthy ones
	// that its migrate block allows.
	Count int `json:"count"`
	Limit int `json:"limit"`
	// LowestAtMark is the lowest number of healthy allocations after a paced mark; null
	// without such a mark.
	LowestAtMark *int `json:"lowest_healthy_at_paced_mark"`
	// Lowest is the lowest number of healthy allocations for any cause, deadlines included.
	Lowest int `json:"lowest_healthy"`
}

// judge returns the failures of the run.
func judge(s *Summary, report witness.Report) (failures []string) {
	for _, d := range s.Drains {
		switch outcome := cluster.Outcome(d.Outcome); {
		case outcome == cluster.OutcomeNone:
			failures = append(failures, fmt.Sprintf("the drain of %s did not end", d.Node))
		case outcome == cluster.OutcomeComplete, outcome == cluster.OutcomeDeadlineReached && d.DeadlineSeconds > 0:
		default:
			failures = append(failures, fmt.Sprintf("the drain of %s ended as %q", d.Node, outcome))
		}
	}
	if len(s.Drains) == 0 {
		failures = append(failures, "no node was drained")
	}
	switch kill := s.LeaderKill; {
	case kill == nil:
		failures = append(failures, "the leader was not killed: no drain ran long enough")
	case kill.DrainsRunning == 0:
		failures = append(failures, "no drain was running when the leader was killed")
	case kill.NewLeader == "":
		failures = append(failures, "there was no leader after the kill")
	}
	for _, key := range report.UnderLimit() {
		failures = append(failures, fmt.Sprintf("a paced mark took group %s below its limit", key))
	}
	if report.Found > 0 {
		failures = append(failures, fmt.Sprintf("the witness has %d findings, the first: %s", report.Found, report.Findings[0]))
	}
	return failures
}

// belowLimit reports whether a paced mark took the group below its limit.
func (g *GroupSummary) belowLimit() bool { return g.LowestAtMark != nil && *g.LowestAtMark < g.Limit }

// add adds the report of the witness. It takes the groups that have a limit.
func (s *Summary) add(report witness.Report, drains []*drainRun, limits map[cluster.GroupKey]int) {
	counted := make(map[cluster.DrainID]witness.DrainReport)
	for _, d := range report.Drains {
		counted[d.ID] = d
	}
	for _, run := range drains {
		s.Drains = append(s.Drains, run.summary(counted[run.id]))
	}
	for _, g := range report.Groups {
		if limit, has := limits[g.Group]; has {
			s.Groups = append(s.Groups, groupSummary(g, limit))
		}
	}
	for _, f := range report.Findings {
		s.Findings = append(s.Findings, f.String())
	}
}

func (r *drainRun) summary(d witness.DrainReport) DrainSummary {
	s := DrainSummary{
		Node: r.name, ID: string(r.id), DeadlineSeconds: r.deadline.Seconds(),
		Outcome: string(d.Outcome), ToLeave: r.total, Marked: make(map[string]int),
		Moved: d.Moved, Stopped: d.Stopped, StillStopping: d.StillStopping, Unconfirmed: d.Unconfirmed,
	}
	if d.Outcome != cluster.OutcomeNone {
		s.Seconds = round(d.EndedAt.Sub(d.StartedAt))
	}
	for class, count := range d.Marked {
		if count > 0 {
			s.Marked[cluster.MarkClass(class).String()] = count
		}
	}
	return s
}

func groupSummary(g witness.GroupReport, limit int) GroupSummary {
	s := GroupSummary{
		Group: g.Group.String(), PacedMarks: g.PacedMarks,
		Count: g.Lowest.Count, Limit: limit, Lowest: g.Lowest.Healthy,
	}
	if g.LowestAtMark.Index != 0 {
		s.LowestAtMark = &g.LowestAtMark.Healthy
	}
	return s
}

// round returns seconds with three decimals.
func round(d time.Duration) float64 { return float64(d.Round(time.Millisecond).Milliseconds()) / 1000 }
