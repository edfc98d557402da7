package drain

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// requestPlan requests a plan. On a terminal a line shows how long that takes, except with -json, -t and -plain:
// then lines of their own do.
func requestPlan(c *cli.Call, request drainplan.Request, plain bool) (*drainplan.Answer, error) {
	if width := cli.TerminalWidth(c.Errs); width > 0 && !plain && !c.Raw() && c.Getenv("TERM") != "dumb" {
		before := client.OnRequest(c.API, nil)
		defer func() { client.OnRequest(c.API, before) }()
		end := showWait(cli.Underlying(c.Errs), width)
		defer end()
	} else {
		defer c.Await(func() string {
			return fmt.Sprintf("the plan: a server plays the drains, at most %s; %s", cli.Rough(drainplan.MaxTime), cli.AnAnswer(c.API))
		})()
	}
	plan, _, err := client.PlanDrains(c.Ctx, c.API, request)
	return plan, err
}

const (
	// quietTime is how long a plan takes before a line shows it.
	quietTime = 2 * time.Second
	// waitInterval is the time between two changes of the line.
	waitInterval = time.Second
	// eraseLine erases the line of the cursor.
	eraseLine = "\r\x1b[K"
)

// showWait shows on a terminal of that width how long a plan takes, in one line. It owns a goroutine until the
// caller calls end, which erases the line.
func showWait(terminal io.Writer, width int) (end func()) {
	stop := make(chan struct{})
	var showing sync.WaitGroup
	began := time.Now()
	showing.Go(func() {
		select {
		case <-time.After(quietTime):
		case <-stop:
			return
		}
		ticks := time.NewTicker(waitInterval)
		defer ticks.Stop()
		for {
			text := fmt.Sprintf("A server plays the drains: %s, at most %s", cli.Rough(time.Since(began)), cli.Rough(drainplan.MaxTime))
			fmt.Fprint(terminal, eraseLine+runewidth.Truncate(text, max(width-1, 1), "…")) // a wrapped line would not be erased
			select {
			case <-ticks.C:
			case <-stop:
				fmt.Fprint(terminal, eraseLine)
				return
			}
		}
	})
	return func() {
		close(stop)
		showing.Wait()
	}
}
