package demo

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Plain lines show the progress of all drains at most once in linesInterval, and once in
// idleInterval if it does not change.
const (
	linesInterval = time.Second
	idleInterval  = 2 * time.Second
)

// maxLineDrains is up to how many drains have lines of their own.
const maxLineDrains = 20

// lines writes the progress: at most once a second the sum over all drains, with a
// line for each of up to 20 drains whose reason has changed, and a line at the end of each
// drain.
type lines struct {
	out io.Writer
	// printed is called after each line, or nil.
	printed func()

	next time.Duration // when the sum is shown next if it changed
	idle time.Duration // when it is shown next if not
	sum  string        // the last one shown
	// ended and reasons were shown of each drain, by node.
	ended   map[string]bool
	reasons map[string]rules.Reason
}

func newLines(out io.Writer) *lines {
	return &lines{out: out, ended: make(map[string]bool), reasons: make(map[string]rules.Reason)}
}

// event writes one line.
func (l *lines) event(at time.Duration, text string) {
	fmt.Fprintf(l.out, "%7s  %s\n", seconds(at), text)
	if l.printed != nil {
		l.printed()
	}
}

// show writes what has changed since the last call.
func (l *lines) show(look Look) {
	for _, d := range look.Drains {
		if d.Outcome != cluster.OutcomeNone && !l.ended[d.Node] {
			l.ended[d.Node] = true
			l.event(look.At, fmt.Sprintf("%s: %s", d.Node, d.text()))
		}
	}
	if look.At < l.next {
		return
	}
	ended, total, left, waiting := look.sum()
	text := fmt.Sprintf("%d of %d drains ended, %d of %d allocations left", ended, len(look.Drains), left, total)
	switch waits := waitsFor(waiting); {
	case look.Leader == "":
		text += "; no leader"
	case waits != "":
		text += ": " + waits
	}
	if text != l.sum || look.At >= l.idle {
		l.sum, l.next, l.idle = text, look.At+linesInterval, look.At+idleInterval
		if still := look.still(); still != "" {
			text += "; " + still
		}
		l.event(look.At, text)
	}
	if len(look.Drains) <= maxLineDrains && look.Leader != "" {
		l.reasonsOf(look)
	}
}

// reasonsOf shows the drains whose reason has changed.
func (l *lines) reasonsOf(look Look) {
	for _, d := range look.Drains {
		if d.Outcome != cluster.OutcomeNone || d.Left == 0 {
			continue
		}
		if last, ok := l.reasons[d.Node]; !ok || last != d.Reason {
			l.reasons[d.Node] = d.Reason
			text := d.text()
			if d.Cause != "" {
				text += "; " + d.Cause
			}
			l.event(look.At, fmt.Sprintf("  %s: %s", d.Node, text))
		}
	}
}
