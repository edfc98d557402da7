package sim

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// progress returns functions that show the progress of a swarm: one for each run, called one at a time,
// and one for the end. They draw a bar on a terminal with a cursor, and write lines elsewhere. If no seed ends for
// long, and with -json, lines on the standard error have the progress.
func (c *swarmCommand) progress() (played func(swarm.Run), end func()) {
	p := &pace{began: time.Now(), of: c.seeds}
	if !c.json && cli.TerminalWidth(c.call.Out) > 0 && c.call.Getenv("TERM") != "dumb" { // a dumb terminal cannot move its cursor
		return drawBar(cli.Underlying(c.call.Out), p)
	}
	waiting := c.call.StartWaiting(func() string { return "seeds: " + p.String() })
	printed := p.began
	return func(r swarm.Run) {
		p.add(r)
		if c.json {
			return
		}
		waiting.Printed() // a line follows soon if seeds end
		if now := time.Now(); now.Sub(printed) >= lineInterval {
			printed = now
			fmt.Fprintf(c.call.Out, "%7s  %s\n", now.Sub(p.began).Round(time.Second), p)
		}
	}, waiting.End
}

// lineInterval is the time between two lines.
const lineInterval = 10 * time.Second

// swarmBarWidth is the width of the bar in columns.
const swarmBarWidth = 24

// drawBar draws a bar. Its library has goroutines until the end.
func drawBar(out io.Writer, p *pace) (played func(swarm.Run), end func()) {
	container := mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh())
	bar := container.AddBar(int64(p.of), mpb.BarWidth(swarmBarWidth), mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + p.brief() })))
	return func(r swarm.Run) {
			p.add(r)
			bar.Increment()
		}, func() {
			bar.Abort(true) // no effect on a complete bar
			container.Wait()
		}
}

// pace is the speed of a swarm so far. It is safe for concurrent use: it is read while the bar is drawn.
type pace struct {
	began time.Time
	of    int

	mu           sync.Mutex
	swarm.Report // guarded by mu
}

func (p *pace) add(r swarm.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Seeds++
	p.Busy += r.Busy
	p.Took = max(time.Since(p.began), time.Millisecond)
	if r.Failure != nil {
		p.Failed++
	}
}

func (p *pace) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d of %d seeds, %d failed, %.0f seeds per minute, %.2f busy hours per second",
		p.Seeds, p.of, p.Failed, p.SeedsPerMinute(), p.BusyHoursPerSecond())
}

// brief is short enough to stand beside a bar. Its time goes on while no seed ends.
func (p *pace) brief() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d of %d, %d failed, %.0f a minute, %s", p.Seeds, p.of, p.Failed, p.SeedsPerMinute(), cli.Rough(time.Since(p.began)))
}
