package drain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// drainDisplay shows what a monitor sees.
type drainDisplay interface {
	// event shows a change of the drain.
	event(at time.Time, text string)
	// trouble shows a lost connection, or why the monitor gives up.
	trouble(at time.Time, text string)
	// progress shows the progress of the drain.
	progress(drainLook)
	// close ends the output and leaves it on the screen.
	close()
}

// drainLook is the progress of a drain at one time.
type drainLook struct {
	leaving
	// rounds is the minimum number of rounds left, or zero if it is not known.
	rounds int
	// endsBy is the latest end of the drain, or zero if it is not known.
	endsBy time.Time
	held   []heldGroup
	at     time.Time
}

// String returns the progress in one line.
func (l drainLook) String() string {
	if rest := l.rest(); rest != "" {
		return l.count() + ", " + rest
	}
	return l.count()
}

// count is how many allocations are left.
func (l drainLook) count() string {
	return fmt.Sprintf("%d of %s left", l.left, cli.Count(l.most, "allocation"))
}

// rest is what is known of the rest of the drain, or empty.
func (l drainLook) rest() string {
	if l.left == 0 {
		return ""
	}
	var parts []string
	if l.rounds > 0 {
		parts = append(parts, "at least "+cli.Count(l.rounds, "round"))
	}
	if !l.endsBy.IsZero() {
		parts = append(parts, "ends by "+cli.Soon(l.endsBy, l.at))
	}
	return strings.Join(parts, ", ")
}

// Lines shows a drain as lines. It needs no terminal.
type Lines struct {
	out, errs io.Writer
	// printed is the number of allocations left in the last line, or -1 before the first.
	printed int
}

// NewLines returns a display of lines.
func NewLines(out, errs io.Writer) *Lines {
	return &Lines{out: out, errs: errs, printed: -1}
}

func (l *Lines) event(at time.Time, text string)   { Stamped(l.out, at, text) }
func (l *Lines) trouble(at time.Time, text string) { Stamped(l.errs, at, text) }

// progress writes a line when the number of allocations left changes.
func (l *Lines) progress(look drainLook) {
	if look.left == l.printed {
		return
	}
	l.printed = look.left
	Stamped(l.out, look.at, look.String())
}

func (l *Lines) close() {}

// Stamped writes a line after its local time.
func Stamped(out io.Writer, at time.Time, text string) {
	fmt.Fprintf(out, "%s: %s\n", at.Local().Format(cli.TimeLayout), text)
}
