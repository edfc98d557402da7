package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Look is the state of all drains at one time.
type Look struct {
	// At is the time since the run began.
	At time.Duration
	// Leader is the leader, or empty if there is none.
	Leader string
	// Still is how long no allocation has left.
	Still  time.Duration
	Drains []DrainLook
}

// DrainLook is the progress of one drain.
type DrainLook struct {
	Node string
	// Total is the most allocations that had to leave at one time, Left how many
	// still have to.
	Total, Left int
	// Reason is the drain's most severe reason. Waiting counts the allocations by reason.
	Reason  rules.Reason
	Waiting [rules.ReasonCount]int
	// Cause is what causes Reason, or empty. No command follows: the servers of a demonstration have no
	// address to which one could connect.
	Cause string
	// Outcome is empty while the drain runs. Took is how long it ran.
	Outcome cluster.Outcome
	Took    time.Duration
	// Deadline is the time left until the deadline. It is zero or below for a drain that has
	// none or has passed it.
	Deadline time.Duration
}

// text is the progress of the drain and the reasons why it waits.
func (d DrainLook) text() string {
	if d.Outcome != cluster.OutcomeNone {
		return fmt.Sprintf("%s in %s", d.Outcome, seconds(d.Took))
	}
	if waits := waitsFor(d.Waiting); waits != "" {
		return fmt.Sprintf("%d left: %s", d.Left, waits)
	}
	return fmt.Sprintf("%d left", d.Left)
}

// waitsFor formats counts by reason.
func waitsFor(waiting [rules.ReasonCount]int) string {
	var words []string
	for reason, count := range waiting {
		if count > 0 {
			words = append(words, fmt.Sprintf("%d %s", count, rules.Reason(reason)))
		}
	}
	return strings.Join(words, ", ")
}

// sum adds up all drains of a look.
func (l Look) sum() (ended, total, left int, waiting [rules.ReasonCount]int) {
	for _, d := range l.Drains {
		if d.Outcome != cluster.OutcomeNone {
			ended++
		}
		total += d.Total
		left += d.Left
		for reason, count := range d.Waiting {
			waiting[reason] += count
		}
	}
	return ended, total, left, waiting
}

// quiet is how long no allocation must have left until the progress says so.
const quiet = 2 * time.Second

// still says, if no allocation has left for a while, for how long and what ends the wait at the
// latest. Otherwise it is empty.
func (l Look) still() string {
	if l.Still < quiet {
		return ""
	}
	text := fmt.Sprintf("none has left for %.0fs", l.Still.Seconds())
	next := time.Duration(0)
	for _, d := range l.Drains {
		if d.Outcome == cluster.OutcomeNone && d.Deadline > 0 && (next == 0 || d.Deadline < next) {
			next = d.Deadline
		}
	}
	switch {
	case l.Leader == "":
		text += ", the servers elect a leader"
	case next > 0:
		text += fmt.Sprintf(", next deadline in %.0fs", next.Seconds())
	}
	return text
}

// seconds formats a duration.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
