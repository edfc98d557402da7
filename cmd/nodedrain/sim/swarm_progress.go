package sim

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// progress returns functions that show the progress of a swarm: one for each run, called one at a time,
// and one for the end. They draw a bar on a terminal with a cursor, write lines elsewhere, and show
// nothing with -json.
func (c *swarmCommand) progress() (played func(swarm.Run), end func()) {
	p := &pace{began: time.Now(), of: c.seeds}
	switch {
	case c.json:
		return func(swarm.Run) {}, func() {}
	case cli.TerminalWidth(c.call.Out) > 0 && c.call.Getenv("TERM") != "dumb": // a dumb terminal cannot move its cursor
		return drawBar(cli.Underlying(c.call.Out), p)
	}
	printed := p.began
	return func(r swarm.Run) {
		p.add(r)
		if now := time.Now(); now.Sub(printed) >= lineInterval {
			printed = now
			fmt.Fprintf(c.call.Out, "%7s  %s\n", now.Sub(p.began).Round(time.Second), p)
		}
	}, func() {}
}

// lineInterval is the time between two lines.
const lineInterval = 10 * time.Second

// swarmBarWidth is the width of the bar in columns.
const swarmBarWidth = 24

// drawBar draws a bar. Its library has goroutines until the end.
func drawBar(out io.Writer, p *pace) (played func(swarm.Run), end func()) {
	var text atomic.Pointer[string] // read while drawing
	text.Store(new(string))
	container := mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh())
	bar := container.AddBar(int64(p.of), mpb.BarWidth(swarmBarWidth), mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *text.Load() })))
	return func(r swarm.Run) {
			p.add(r)
			text.Store(new(p.brief()))
			bar.Increment()
		}, func() {
			bar.Abort(true) // no effect on a complete bar
			container.Wait()
		}
}

// pace is the speed of a swarm so far.
type pace struct {
	began time.Time
	of    int
	swarm.Report
}

func (p *pace) add(r swarm.Run) {
	p.Seeds++
	p.Busy += r.Busy
	p.Took = max(time.Since(p.began), time.Millisecond)
	if r.Failure != nil {
		p.Failed++
	}
}

func (p *pace) String() string {
	return fmt.Sprintf("%d of %d seeds, %d failed, %.0f seeds per minute, %.2f busy hours per second",
		p.Seeds, p.of, p.Failed, p.SeedsPerMinute(), p.BusyHoursPerSecond())
}

// brief is short enough to stand beside a bar.
func (p *pace) brief() string {
	return fmt.Sprintf("%d of %d, %d failed, %.0f a minute", p.Seeds, p.of, p.Failed, p.SeedsPerMinute())
}
