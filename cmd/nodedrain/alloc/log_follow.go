package alloc

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// follow prints a log until its task has ended. Only the first read may be refused. After that the servers
// and the node may restart: the reads go on after the last frame.
func (l *taskLog) follow(c *cli.Call, alloc string) error {
	lost := false
	c.API.OnMove(nil) // an outage has one line
	l.answered = func() {
		if lost {
			fmt.Fprintln(c.Errs, "the log continues")
		}
		lost = false
	}
	servers := &cli.Contact{Patience: cli.MonitorPatience}
	servers.Answered()
	var ended time.Time // when the end of the task was observed
	for first := true; ; first = false {
		err := l.print(c.Ctx, true)
		if c.Ctx.Err() != nil || lasting(err) || first && answered(err) {
			return err
		}
		if err != nil && !lost {
			lost = true
			fmt.Fprintf(c.Errs, "the log cannot be read, retrying: %v\n", err)
		}
		if !ended.IsZero() { // before this read began
			if err == nil || client.Refused(err) || time.Since(ended) > eval.EvaluatedPatience {
				return err
			}
			cli.Pause(c.Ctx, client.Pause)
			continue
		}
		a, _, unread := c.API.Allocation(c.Ctx, alloc, client.Query{})
		switch {
		case client.NotFound(unread):
			return errors.Join(err, unread)
		case unread != nil && servers.Over():
			return unread
		case unread == nil && Over(a, l.from.Task):
			ended = time.Now()
			continue // once more: it may have written something
		case unread == nil:
			servers.Answered()
		}
		cli.Pause(c.Ctx, client.Pause)
	}
}

// answered reports whether a failure is the answer of a server.
func answered(err error) bool {
	_, is := errors.AsType[*client.Error](err)
	return is
}

// lasting reports whether a failure does not pass: the output is closed, the user lacks a right, or the
// server cannot go on where the log was.
func lasting(err error) bool {
	_, print := errors.AsType[errPrint](err)
	answer, is := errors.AsType[*client.Error](err)
	return print || errors.Is(err, errElsewhere) || is && (answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized)
}
