package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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

func (s *Summary) writeDrains(w io.Writer) {
	fmt.Fprint(w, "\nDrains\n")
	t := table(w)
	fmt.Fprint(t, "  node\toutcome\ttook\tdeadline\tto leave\tmoved\tstopped\tmarks\n")
	for _, d := range s.Drains {
		took, deadline, outcome := "-", "none", d.Outcome
		if outcome == "" {
			outcome = "still running"
		} else {
			took = fmt.Sprintf("%.1fs", d.Seconds)
		}
		if d.DeadlineSeconds > 0 {
			deadline = fmt.Sprintf("%.1fs", d.DeadlineSeconds)
		}
		if d.StillStopping > 0 {
			outcome += fmt.Sprintf(" (%d still stopping)", d.StillStopping)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", d.Node, outcome, took, deadline, d.ToLeave, d.Moved, d.Stopped, counts(d.Marked))
	}
	t.Flush()
}

func (s *Summary) writeGroups(w io.Writer) {
	fmt.Fprint(w, "\nService groups on draining nodes, counted by a witness that shares no code with the drainer\n")
	t := table(w)
	fmt.Fprint(t, "  group\tcount\tlimit\tpaced marks\tlowest healthy after a paced mark\tlowest healthy\n")
	for _, g := range s.Groups {
		low := "-"
		if g.LowestAtMark != nil {
			low = strconv.Itoa(*g.LowestAtMark)
			if *g.LowestAtMark < g.Limit {
				low += "  BELOW ITS LIMIT"
			}
		}
		fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%s\t%d\n", g.Group, g.Count, g.Limit, g.PacedMarks, low, g.Lowest)
	}
	t.Flush()
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
	if s.OK {
		fmt.Fprintf(w, "OK: every drain ended as expected, and no paced mark took a group below its limit. %.1fs in all.\n", s.Seconds)
		return
	}
	fmt.Fprintf(w, "FAILED after %.1fs:\n", s.Seconds)
	for _, f := range s.Failures {
		fmt.Fprintf(w, "  %s\n", f)
	}
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
