package drain

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// drainDisplay shows what a monitor observes.
type drainDisplay interface {
	// event shows a change of the drain.
	event(at time.Time, text string)
	// trouble shows a lost connection, or why the monitor gives up.
	trouble(at time.Time, text string)
	// progress shows the progress of the drain.
	progress(drainProgress)
	// close ends the output and leaves it on the screen.
	close()
}

// drainProgress is the progress of a drain at one time.
type drainProgress struct {
	leaving
	// rounds is the minimum number of rounds left, or zero if it is not known.
	rounds int
	// endsBy is the latest end of the drain, or zero if it is not known.
	endsBy time.Time
	// endsAbout is the estimated end of the drain, or zero if it is not known.
	endsAbout time.Time
	held      []heldGroup
	at        time.Time
}

// String returns the progress in one line.
func (l drainProgress) String() string {
	if rest := l.rest(); rest != "" {
		return l.count() + ", " + rest
	}
	return l.count()
}

// count is how many allocations are left.
func (l drainProgress) count() string {
	return fmt.Sprintf("%d of %s left", l.left, cli.Count(l.most, "allocation"))
}

// rest is what is known of the rest of the drain, or empty.
func (l drainProgress) rest() string {
	if l.left == 0 {
		return ""
	}
	var parts []string
	if l.rounds > 0 {
		parts = append(parts, "at least "+cli.Count(l.rounds, "round"))
	}
	if left := l.endsAbout.Sub(l.at); !l.endsAbout.IsZero() && left > 0 {
		parts = append(parts, "about "+cli.Rough(left)+" left")
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
func (l *Lines) progress(latest drainProgress) {
	if latest.left == l.printed {
		return
	}
	l.printed = latest.left
	Stamped(l.out, latest.at, latest.String())
}

func (l *Lines) close() {}

// Stamped writes a line after its local time.
func Stamped(out io.Writer, at time.Time, text string) {
	fmt.Fprintf(out, "%s: %s\n", at.Local().Format(cli.TimeLayout), text)
}

// Bar draws a bar, and below it why allocations have not moved. Events scroll above it. It owns the goroutines of its container until it is closed.
type Bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	latest    atomic.Pointer[drainProgress] // read while drawing
}

const (
	// drainBarWidth is the width of the bar in columns.
	drainBarWidth = 24
	// heldRows is the maximum number of reasons shown.
	heldRows = 6
)

// NewBar returns a display with a bar on a terminal.
func NewBar(out io.Writer) *Bar {
	b := &Bar{container: mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh())}
	b.latest.Store(new(drainProgress))
	b.bar = b.container.AddBar(0, mpb.BarWidth(drainBarWidth),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + b.line() })),
		mpb.BarExtender(mpb.BarFillerFunc(b.reasons), false))
	return b
}

// line returns the text beside the bar. It is short, so that the bar fits into 60 columns.
func (b *Bar) line() string { return b.latest.Load().count() }

// reasons writes the lines below the bar. Each must fit the terminal: the bar does not
// erase a wrapped line.
func (b *Bar) reasons(out io.Writer, s decor.Statistics) error {
	latest := b.latest.Load()
	if rest := latest.rest(); rest != "" {
		if _, err := fmt.Fprintln(out, runewidth.Truncate("  "+rest, max(s.AvailableWidth, 1), "…")); err != nil {
			return err
		}
	}
	held := latest.held
	for i, h := range held {
		text := h.short()
		if i == heldRows-1 && len(held) > heldRows {
			text = fmt.Sprintf("and %d more; \"nodedrain node explain\" lists them", len(held)-i)
		}
		if _, err := fmt.Fprintln(out, runewidth.Truncate("  "+text, max(s.AvailableWidth, 1), "…")); err != nil || i == heldRows-1 {
			return err
		}
	}
	return nil
}

func (b *Bar) event(at time.Time, text string)   { Stamped(b.container, at, text) }
func (b *Bar) trouble(at time.Time, text string) { Stamped(b.container, at, text) }

func (b *Bar) progress(latest drainProgress) {
	b.latest.Store(&latest)
	b.bar.SetTotal(int64(max(latest.most, 1)), false) // false: the drain's end completes the bar, not its count
	b.bar.SetCurrent(int64(latest.most - latest.left))
}

func (b *Bar) close() {
	b.bar.Abort(false)
	b.container.Wait()
}
