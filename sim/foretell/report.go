package foretell

import (
	"fmt"
	"time"
)

// The bounds of promise F3, for worlds with observed times and drains of leastTook or more.
const (
	leastWithin = 0.90
	mostOff     = 0.15
	leastTook   = 10 * time.Second
)

// Report sums up comparisons. The zero value has none.
type Report struct {
	// Bounded are the worlds that have bounds.
	Bounded Row
	rows    [rowCount]Row
}

// The other rows of a report.
const (
	small = iota
	medium
	large
	huge
	moving
	staying
	timed
	brief
	partly
	stuck
	declared
	rowCount
)

// Row sums up worlds of one kind.
type Row struct {
	Worlds, Unseen, Within, Lower int
	// Off is the sum of the differences of the medians, each as a part of what happened.
	Off float64
	// Allocs and TakenOff are sums: see [Comparison].
	Allocs, TakenOff int
}

func (r *Row) add(c *Comparison) {
	r.Worlds++
	r.Unseen += c.Unseen
	r.Within += c.Within
	r.Lower += c.Lower
	r.Off += c.Off()
	r.Allocs += c.Allocs
	r.TakenOff += max(c.TakenOff, -c.TakenOff)
}

// Add adds a comparison.
func (r *Report) Add(c *Comparison) {
	switch {
	case c.Foretold == endless && c.Happened == endless:
		r.rows[stuck].add(c)
	case !c.Partly:
		r.rows[declared].add(c)
	case !c.Observed:
		r.rows[partly].add(c)
	case c.Happened < leastTook:
		r.rows[brief].add(c)
	default:
		r.Bounded.add(c)
		for row, is := range map[int]bool{
			small: c.Nodes <= 10, medium: c.Nodes > 10 && c.Nodes <= 20, large: c.Nodes > 20 && c.Nodes <= mostNodes, huge: c.Nodes > mostNodes,
			moving: c.Moves, staying: !c.Moves, timed: c.Deadline,
		} {
			if is {
				r.rows[row].add(c)
			}
		}
	}
}

// Missed returns the bounds that the report misses. It is an error to have no world with bounds.
func (r *Report) Missed() (missed []string) {
	b := r.Bounded
	if b.Worlds == 0 {
		return []string{"no world has observed times and drains of 10 s or more"}
	}
	if share := b.within(); share < leastWithin {
		missed = append(missed, fmt.Sprintf("%.1f %% of the unseen plays end within the range, at least %.0f %% must", 100*share, 100*leastWithin))
	}
	if off := b.off(); off > mostOff {
		missed = append(missed, fmt.Sprintf("the medians differ by %.1f %% in the mean, at most %.0f %% may be", 100*off, 100*mostOff))
	}
	return missed
}

func (r Row) within() float64 { return float64(r.Within) / float64(max(1, r.Unseen)) }
func (r Row) off() float64    { return r.Off / float64(max(1, r.Worlds)) }

// Table returns the rows of the report as cells, the names of the columns first.
func (r *Report) Table() [][]string {
	table := [][]string{{"worlds of", "worlds", "unseen plays", "within", "medians differ", "taken", "less healthy"}}
	line := func(name string, row Row) {
		if row.Worlds == 0 {
			return
		}
		table = append(table, []string{
			name, fmt.Sprint(row.Worlds), fmt.Sprint(row.Unseen), percent(row.within()), percent(row.off()),
			percent(float64(row.TakenOff) / float64(max(1, row.Allocs))), percent(float64(row.Lower) / float64(max(1, row.Unseen))),
		})
	}
	line("observed times, 10 s or more", r.Bounded)
	for i, name := range [rowCount]string{
		small: "  5 to 10 nodes", medium: "  11 to 20 nodes", large: "  21 to 40 nodes", huge: "  more nodes", moving: "  some data moves",
		staying: "  no data moves", timed: "  with a deadline", brief: "observed times, less than 10 s",
		partly: "partly observed times", stuck: "drains that do not end", declared: "declared times",
	} {
		line(name, r.rows[i])
	}
	return table
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
