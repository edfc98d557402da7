package demo

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Plain lines tell at most once in linesInterval how far the drains are, and if
// nothing changes once in idleInterval.
const (
	linesInterval = time.Second
	idleInterval  = 5 * time.Second
)

// maxLineDrains is up to how many drains are told of one by one.
const maxLineDrains = 20

// Lines shows progress as plain lines: once a second, if it changes, how far the
// drains are in sum, and which of up to 20 wait for something else than before;
// of each its end.
type Lines struct {
	out  io.Writer
	next time.Duration // when the sum is due if it changed
	idle time.Duration // when it is due if not
	sum  string        // the last
	// ended and reasons are what has been told of each drain, by node.
	ended   map[string]bool
	reasons map[string]rules.Reason
}

// NewLines returns plain lines. It does not look at errors of out.
func NewLines(out io.Writer) *Lines {
	return &Lines{out: out, ended: make(map[string]bool), reasons: make(map[string]rules.Reason)}
}

// Event tells of one thing that happened.
func (l *Lines) Event(at time.Duration, text string) {
	fmt.Fprintf(l.out, "%7s  %s\n", seconds(at), text)
}

// Look tells of what has changed since the last look.
func (l *Lines) Look(look Look) {
	for _, d := range look.Drains {
		if d.Outcome != cluster.OutcomeNone && !l.ended[d.Node] {
			l.ended[d.Node] = true
			l.Event(look.At, fmt.Sprintf("%s: %s", d.Node, d.text()))
		}
	}
	if look.At < l.next {
		return
	}
	ended, total, left, waiting := look.sum()
	text := fmt.Sprintf("%d of %d drains ended, %d of %d allocations left to go", ended, len(look.Drains), left, total)
	switch waits := waitsFor(waiting); {
	case look.Leader == "":
		text += "; no leader"
	case waits != "":
		text += ": " + waits
	}
	if text != l.sum || look.At >= l.idle {
		l.sum, l.next, l.idle = text, look.At+linesInterval, look.At+idleInterval
		l.Event(look.At, text)
	}
	if len(look.Drains) <= maxLineDrains && look.Leader != "" {
		l.reasonsOf(look)
	}
}

// reasonsOf tells of the drains that now wait for something else.
func (l *Lines) reasonsOf(look Look) {
	for _, d := range look.Drains {
		if d.Outcome != cluster.OutcomeNone || d.Left == 0 {
			continue
		}
		if told, ok := l.reasons[d.Node]; !ok || told != d.Reason {
			l.reasons[d.Node] = d.Reason
			l.Event(look.At, fmt.Sprintf("  %s: %s", d.Node, d.text()))
		}
	}
}

// Close does nothing.
func (l *Lines) Close() {}
