package demo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// Write writes the summary for people.
func (s *Summary) Write(out io.Writer) error {
	w := &sticky{out: out}
	s.writeDrains(w)
	s.writeGroups(w)
	s.writeEnd(w)
	return w.err
}

// sticky is a writer that keeps its first error and writes nothing after it.
type sticky struct {
	out io.Writer
	err error
}

func (w *sticky) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.out.Write(p)
	w.err = err
	return n, err
}

// writeDrains writes a row for each drain. The drains that did not complete come first. Of many
// drains, those that completed share a line.
func (s *Summary) writeDrains(w io.Writer) {
	var rows, complete []DrainSummary
	for _, d := range s.Drains {
		if d.Outcome == string(cluster.OutcomeComplete) {
			complete = append(complete, d)
		} else {
			rows = append(rows, d)
		}
	}
	if len(s.Drains) <= maxLineDrains {
		rows, complete = append(rows, complete...), nil
	}
	fmt.Fprint(w, "\nDrains\n")
	if len(rows) > 0 {
		t := table(w)
		fmt.Fprint(t, "  node\toutcome\ttook\tdeadline\tto leave\tmoved\tstopped\tmarks\n")
		for _, d := range rows {
			d.write(t)
		}
		t.Flush()
	}
	if len(complete) > 0 {
		moved, longest := 0, 0.0
		for _, d := range complete {
			moved, longest = moved+d.Moved, max(longest, d.Seconds)
		}
		fmt.Fprintf(w, "  %s complete: %s moved, the longest took %.1fs\n",
			cli.Count(len(complete), "drain"), cli.Count(moved, "allocation"), longest)
	}
}

func (d *DrainSummary) write(w io.Writer) {
	took, deadline, outcome := "-", "none", d.Outcome
	if outcome == "" {
		outcome = "still running"
	} else {
		took = fmt.Sprintf("%.1fs", d.Seconds)
	}
	if d.DeadlineSeconds > 0 {
		deadline = fmt.Sprintf("%.1fs", d.DeadlineSeconds)
	}
	var left []string
	if d.StillStopping > 0 {
		left = append(left, fmt.Sprintf("%d still stopping", d.StillStopping))
	}
	if d.Unconfirmed > 0 {
		left = append(left, fmt.Sprintf("%d unconfirmed", d.Unconfirmed))
	}
	if left != nil {
		outcome += " (" + strings.Join(left, ", ") + ")"
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", d.Node, outcome, took, deadline, d.ToLeave, d.Moved, d.Stopped, counts(d.Marked))
}

// writeGroups writes a row for each group that had fewer healthy allocations than its limit, the
// worst first, and one line for all others.
func (s *Summary) writeGroups(w io.Writer) {
	var rows []GroupSummary
	for _, g := range s.Groups {
		if g.Lowest < g.Limit || g.belowLimit() {
			rows = append(rows, g)
		}
	}
	slices.SortStableFunc(rows, func(a, b GroupSummary) int { return cmp.Compare(a.Lowest-a.Limit, b.Lowest-b.Limit) })
	fmt.Fprint(w, "\nService groups on draining nodes, counted by a witness that shares no code with the drainer\n")
	if len(rows) > 0 {
		t := table(w)
		fmt.Fprint(t, "  group\tcount\tlimit\tlowest healthy\tafter a paced mark\tbecause of\n")
		for _, g := range rows {
			low, cause := "-", "a deadline or a failure"
			if g.LowestAtMark != nil {
				low = strconv.Itoa(*g.LowestAtMark)
			}
			if g.belowLimit() {
				cause = "paced marks: BELOW ITS LIMIT"
			}
			fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%s\t%s\n", g.Group, g.Count, g.Limit, g.Lowest, low, cause)
		}
		t.Flush()
	}
	if well := len(s.Groups) - len(rows); well > 0 {
		fmt.Fprintf(w, "  %s always had at least as many healthy allocations as the limit\n", cli.Count(well, "group"))
	}
}

func (s *Summary) writeEnd(w io.Writer) {
	fmt.Fprintln(w)
	if kill := s.LeaderKill; kill != nil {
		fmt.Fprintf(w, "The leader %s was killed %.1fs after the drains started, with %d drains running and %d allocations left.\n",
			kill.Server, kill.AtSeconds, kill.DrainsRunning, kill.AllocationsLeft)
		if kill.NewLeader != "" {
			fmt.Fprintf(w, "%s became the leader %.1fs later and continued from the replicated state.\n", kill.NewLeader, kill.ElectionSeconds)
		}
	}
	if !s.OK {
		fmt.Fprintf(w, "FAILED after %.1fs:\n", s.Seconds)
		for _, f := range s.Failures {
			fmt.Fprintf(w, "  %s\n", f)
		}
		return
	}
	fmt.Fprintln(w, s.verdict())
}

// verdict is the result of a run without failures, in a sentence.
func (s *Summary) verdict() string {
	moved := 0
	for _, d := range s.Drains {
		moved += d.Moved
	}
	return fmt.Sprintf("OK: %s drained as expected and %s moved, and no paced mark took one of %s below its limit. %.1fs in all.",
		cli.Count(len(s.Drains), "node"), cli.Count(moved, "allocation"), cli.Count(len(s.Groups), "service group"), s.Seconds)
}

func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) }

// counts formats counts by name, ordered by name.
func counts(m map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprintf("%d %s", m[name], name))
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, ", ")
}
