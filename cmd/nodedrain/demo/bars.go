package demo

import (
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Bars shows a bar for each drain with the reasons why it waits, and below them the time and
// the leader. Bars of ended drains scroll away above. Bars that do not fit on the terminal are
// not drawn.
//
// It owns the goroutines of its container of bars, until Close.
type Bars struct {
	container *mpb.Progress
	drains    []*drainBar
	status    *mpb.Bar
	line      atomic.Pointer[string] // the status, read while drawing
}

// drainBar is the bar of one drain.
type drainBar struct {
	*mpb.Bar
	text atomic.Pointer[string] // read while drawing
	done bool
}

// barWidth is the width of a bar in columns.
const barWidth = 24

// NewBars returns bars drawn on a terminal.
func NewBars(out io.Writer) *Bars {
	return &Bars{container: mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh(), mpb.PopCompletedMode())}
}

// Event writes a line above the bars.
func (b *Bars) Event(at time.Duration, text string) {
	fmt.Fprintf(b.container, "%7s  %s\n", seconds(at), text)
}

// Look moves the bars.
func (b *Bars) Look(look Look) {
	if b.drains == nil {
		b.add(look)
	}
	for i, d := range look.Drains {
		b.drains[i].show(d, look.Leader != "")
	}
	leader := "leader " + look.Leader
	if look.Leader == "" {
		leader = "no leader"
	}
	ended, total, left, _ := look.sum()
	line := fmt.Sprintf("%7s  %d of %d drains ended, %d of %d allocations left, %s",
		seconds(look.At), ended, len(look.Drains), left, total, leader)
	if still := look.still(); still != "" {
		line += "; " + still
	}
	b.line.Store(&line)
}

// add makes the bars.
func (b *Bars) add(look Look) {
	width := 0
	for _, d := range look.Drains {
		width = max(width, len(d.Node))
	}
	for _, d := range look.Drains {
		bar := new(drainBar)
		bar.text.Store(new(string))
		text := func(decor.Statistics) string { return " " + *bar.text.Load() }
		bar.Bar = b.container.AddBar(0, mpb.BarWidth(barWidth), // the bar ends with the drain, not when nothing is left
			mpb.PrependDecorators(decor.Name(d.Node, decor.WC{W: width + 1, C: decor.DindentRight})),
			mpb.AppendDecorators(decor.Any(text)))
		b.drains = append(b.drains, bar)
	}
	b.line.Store(new(string))
	b.status = b.container.New(0, mpb.NopStyle(), mpb.BarPriority(math.MaxInt), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *b.line.Load() })))
}

// show moves one bar. Without a leader the reasons are not known.
func (b *drainBar) show(d DrainLook, hasLeader bool) {
	if b.done {
		return
	}
	text := d.text()
	if !hasLeader && d.Outcome == cluster.OutcomeNone {
		text = fmt.Sprintf("%d left", d.Left)
	}
	b.text.Store(&text)
	total := max(1, int64(d.Total), int64(d.Left))
	if d.Outcome != cluster.OutcomeNone {
		b.done = true
		b.SetTotal(total, true)
		return
	}
	b.SetTotal(total, false)
	b.SetCurrent(total - int64(d.Left))
}

// Close stops drawing and leaves the bars as they are.
func (b *Bars) Close() {
	for _, bar := range b.drains {
		if !bar.done {
			bar.Abort(false)
		}
	}
	if b.status != nil {
		b.status.Abort(true)
	}
	b.container.Wait()
}
