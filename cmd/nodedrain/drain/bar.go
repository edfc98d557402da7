package drain

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Bar draws a bar, and below it why allocations have not moved. Events scroll above it. It owns the goroutines of its container until it is closed.
type Bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	look      atomic.Pointer[drainLook] // read while drawing
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
	b.look.Store(new(drainLook))
	b.bar = b.container.AddBar(0, mpb.BarWidth(drainBarWidth),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + b.line() })),
		mpb.BarExtender(mpb.BarFillerFunc(b.reasons), false))
	return b
}

// line returns the text beside the bar. It is short, so that the bar fits into 60 columns.
func (b *Bar) line() string { return b.look.Load().count() }

// reasons writes the lines below the bar. Each must fit the terminal: the bar does not
// erase a wrapped line.
func (b *Bar) reasons(out io.Writer, s decor.Statistics) error {
	look := b.look.Load()
	if rest := look.rest(); rest != "" {
		if _, err := fmt.Fprintln(out, runewidth.Truncate("  "+rest, max(s.AvailableWidth, 1), "…")); err != nil {
			return err
		}
	}
	held := look.held
	for i, h := range held {
		text := h.String()
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

func (b *Bar) progress(look drainLook) {
	b.look.Store(&look)
	b.bar.SetTotal(int64(max(look.most, 1)), false) // false: the drain's end completes the bar, not its count
	b.bar.SetCurrent(int64(look.most - look.left))
}

func (b *Bar) close() {
	b.bar.Abort(false)
	b.container.Wait()
}
