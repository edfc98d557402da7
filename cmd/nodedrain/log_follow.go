package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// follow prints a log until its task has ended. Only the first read may be refused. After that the servers
// and the node may restart: the reads go on after the last frame.
func (c *allocLogsCommand) follow(asked *client.Client, alloc string, from *taskLog) error {
	from.heard = c.reportOutage(asked)
	servers := &contact{patience: monitorPatience}
	servers.answered()
	var ended time.Time // when the task was seen to have ended
	for first := true; ; first = false {
		err := from.print(c.ctx, true)
		if c.ctx.Err() != nil || lasting(err) || first && client.Refused(err) {
			return err
		}
		a, _, unread := asked.Allocation(c.ctx, alloc, client.Query{})
		switch {
		case client.NotFound(unread):
			return errors.Join(err, unread)
		case unread != nil && servers.over():
			return unread
		case unread == nil && !over(a, from.from.Task):
			servers.answered()
		case unread == nil && (err == nil || client.Refused(err)):
			return err
		case unread == nil && ended.IsZero():
			ended = time.Now()
		case unread == nil && time.Since(ended) > evaluatedPatience:
			return err // its node is away, and what it has written last too
		}
		pause(c.ctx, client.Pause)
	}
}

// lasting reports whether a failure does not pass: the output is closed, or the user lacks a right.
func lasting(err error) bool {
	_, print := errors.AsType[errPrint](err)
	answer, is := errors.AsType[*client.Error](err)
	return print || is && (answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized)
}

// reportOutage prints lost connections, each address once, until the returned function is called.
func (c *operatorCommand) reportOutage(asked *client.Client) (answered func()) {
	var mu sync.Mutex
	var lost outage
	tell := func(line func() string) {
		mu.Lock()
		text := line()
		mu.Unlock()
		if text != "" {
			fmt.Fprintln(c.errs, text)
		}
	}
	asked.OnMove(func(m client.Move) {
		tell(func() string { return lost.moved(m, monitorPatience) })
	})
	return func() { tell(lost.answered) }
}
