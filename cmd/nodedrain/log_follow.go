package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// follow prints a log until its task has ended. Only the first read may be refused. After that the servers
// and the node may restart: the reads go on from the last frame. It owns a goroutine that waits for the end
// of the task.
func (c *allocLogsCommand) follow(asked *client.Client, a *wire.Allocation, from *taskLog) error {
	ended, end := context.WithCancel(c.ctx)
	defer end()
	servers := &contact{patience: monitorPatience}
	servers.answered()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer end()
	waiting.Go(func() {
		if c.awaitEnd(ended, asked, a, from.task, servers) {
			end()
		}
	})
	from.heard = c.reportOutage(asked)
	for first := true; ; first = false {
		err := from.print(ended, true)
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case ended.Err() != nil:
			return c.rest(from)
		case err == nil || errors.Is(err, errMoved):
			servers.answered()
		case lasting(err), first && client.Refused(err), servers.over():
			return err
		}
		pause(ended, client.Pause)
	}
}

// lasting reports whether a failure does not pass: the output is closed, or the user has lost its rights.
func lasting(err error) bool {
	_, print := errors.AsType[errPrint](err)
	answer, is := errors.AsType[*client.Error](err)
	return print || is && (answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized)
}

// rest prints what an ended task has written last. A node that is gone cannot say it.
func (c *allocLogsCommand) rest(from *taskLog) error {
	for {
		if err := from.print(c.ctx, false); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// awaitEnd waits until a task has ended, and reports whether it has.
func (c *allocLogsCommand) awaitEnd(ctx context.Context, asked *client.Client, a *wire.Allocation, task string, servers *contact) bool {
	for index := uint64(0); !over(a, task); {
		read, answer, err := again(ctx, servers, following(index, allocsWait, func(q client.Query) (*wire.Allocation, client.Answer, error) {
			return asked.Allocation(ctx, a.ID, q)
		}))
		if err != nil {
			return client.NotFound(err)
		}
		a, index = read, answer.Index
	}
	return true
}

// reportOutage prints lost connections, each address once, until the returned function is called.
func (c *operatorCommand) reportOutage(asked *client.Client) (answered func()) {
	var mu sync.Mutex
	var lost outage
	asked.OnMove(func(m client.Move) {
		mu.Lock()
		line := lost.moved(m, monitorPatience)
		mu.Unlock()
		if line != "" {
			fmt.Fprintln(c.errs, line)
		}
	})
	return func() {
		mu.Lock()
		line := lost.answered()
		mu.Unlock()
		if line != "" {
			fmt.Fprintln(c.errs, line)
		}
	}
}
