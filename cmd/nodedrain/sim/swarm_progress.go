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

// swarmProgress shows the progress of a swarm.
type swarmProgress interface {
	// played is called for each seed, one call at a time.
	played(swarm.Run)
	// close ends the output.
	close()
}

// progress returns a bar on a terminal with a cursor, lines elsewhere, and nothing with -json.
func (c *SwarmCommand) progress(f *SwarmFlags) swarmProgress {
	pace := pace{began: time.Now(), of: f.seeds}
	switch {
	case f.json:
		return noProgress{}
	case cli.TerminalWidth(c.Out) > 0 && c.Getenv("TERM") != "dumb": // a dumb terminal cannot move its cursor
		return newSwarmBar(cli.Underlying(c.Out), pace)
	}
	return &swarmLines{pace: pace, out: c.Out, printed: pace.began}
}

type noProgress struct{}

func (noProgress) played(swarm.Run) {}
func (noProgress) close()           {}

// pace is the speed of a swarm.
type pace struct {
	began             time.Time
	of, seeds, failed int
	busy              time.Duration
}

func (p *pace) add(r swarm.Run) {
	p.seeds++
	p.busy += r.Busy
	if r.Failure != nil {
		p.failed++
	}
}

// String returns the speed so far.
func (p *pace) String() string {
	took := max(time.Since(p.began), time.Millisecond)
	return fmt.Sprintf("%d of %d seeds, %d failed, %.0f seeds per minute, %.2f busy hours per second",
		p.seeds, p.of, p.failed, float64(p.seeds)/took.Minutes(), p.busy.Hours()/took.Seconds())
}

// brief returns the speed so far, short enough to stand beside a bar.
func (p *pace) brief() string {
	took := max(time.Since(p.began), time.Millisecond)
	return fmt.Sprintf("%d of %d, %d failed, %.0f a minute", p.seeds, p.of, p.failed, float64(p.seeds)/took.Minutes())
}

// swarmLines writes a line every lineInterval.
type swarmLines struct {
	pace
	out io.Writer
	// printed is the time of the last line.
	printed time.Time
}

// lineInterval is the time between two lines.
const lineInterval = 10 * time.Second

func (l *swarmLines) played(r swarm.Run) {
	l.add(r)
	if now := time.Now(); now.Sub(l.printed) >= lineInterval {
		l.printed = now
		fmt.Fprintf(l.out, "%7s  %s\n", now.Sub(l.began).Round(time.Second), l.pace.String())
	}
}

func (l *swarmLines) close() {}

// swarmBar draws a bar. It owns the goroutines of its container until it is closed.
type swarmBar struct {
	pace
	container *mpb.Progress
	bar       *mpb.Bar
	text      atomic.Pointer[string] // read while drawing
}

// swarmBarWidth is the width of the bar in columns.
const swarmBarWidth = 24

func newSwarmBar(out io.Writer, pace pace) *swarmBar {
	b := &swarmBar{pace: pace, container: mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh())}
	b.text.Store(new(string))
	b.bar = b.container.AddBar(int64(pace.of), mpb.BarWidth(swarmBarWidth), mpb.BarRemoveOnComplete(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *b.text.Load() })))
	return b
}

func (b *swarmBar) played(r swarm.Run) {
	b.add(r)
	text := b.pace.brief()
	b.text.Store(&text)
	b.bar.Increment()
}

func (b *swarmBar) close() {
	b.bar.Abort(true) // no effect on a complete bar
	b.container.Wait()
}
