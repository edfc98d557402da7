package alloc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// taskLog reads the log of a task and prints it. It belongs to one goroutine.
type taskLog struct {
	alloc     client.Alloc
	out, errs io.Writer
	// from is what the next read requests: at first what the user selected, then what comes after the last
	// frame.
	from client.LogsQuery
	// answered is called when the first frame of a read has arrived, or is nil.
	answered func()
}

// errElsewhere is the failure of a server without [client.LogsQuery].File, when the log has more
// than one file.
var errElsewhere = errors.New("the server cannot continue the log at the same line: its release is older")

// errPrint is a failure to print. To read again does not help.
type errPrint struct{ error }

// print prints the log from where the last read ended. With follow it waits for more. It returns nil when
// the node ends the log.
func (l *taskLog) print(ctx context.Context, follow bool) error {
	return l.read(ctx, follow, func(data []byte) error {
		if _, err := l.out.Write(data); err != nil {
			return errPrint{err}
		}
		return nil
	})
}

// read reads the log from where the last read ended.
func (l *taskLog) read(ctx context.Context, follow bool, write func([]byte) error) error {
	l.from.Follow = follow
	first, again := true, l.from.File != ""
	for frame, err := range l.alloc.Logs(ctx, l.from) {
		if err != nil {
			return err
		}
		if first && l.answered != nil {
			l.answered()
		}
		first = false
		if len(frame.Data) == 0 { // the next frame has the place where the log goes on
			again = false
			fmt.Fprintf(l.errs, "%s: %s\n", cli.SingleLine(path.Base(frame.File)), cli.SingleLine(frame.FileEvent))
			continue
		}
		if again && !l.follows(frame) {
			return errElsewhere
		}
		again = false
		l.from.FromEnd, l.from.Offset = false, frame.Offset
		if frame.File != "" {
			l.from.File = path.Base(frame.File)
		}
		if err := write(frame.Data); err != nil {
			return err
		}
	}
	return nil
}

// follows reports whether a frame comes after the last one: behind it, or at the start of another file.
func (l *taskLog) follows(frame wire.StreamFrame) bool {
	start := frame.Offset - int64(len(frame.Data))
	same := frame.File == "" || path.Base(frame.File) == l.from.File
	return same && start == l.from.Offset || !same && start == 0
}

// The last lines are searched in the last bytes: first in lineGuess for each line, then in more, at most
// in mostTail.
const (
	lineGuess = 160
	mostTail  = 4 << 20
)

// printLast prints the last lines.
func (l *taskLog) printLast(ctx context.Context, lines int64) error {
	for size := min(max(lines, 1), mostTail/lineGuess) * lineGuess; ; size = min(4*size, mostTail) {
		l.from.File, l.from.FromEnd, l.from.Offset = "", true, size
		var text []byte
		err := l.read(ctx, false, func(data []byte) error {
			text = append(text, data...)
			text = text[max(0, len(text)-mostTail):]
			return nil
		})
		if err != nil {
			return err
		}
		if len(text) == 0 { // what comes is all new
			l.from.FromEnd, l.from.Offset = false, 0
		}
		tail, enough := lastLines(text, lines)
		if enough || int64(len(text)) < size || size == mostTail {
			if _, err := l.out.Write(tail); err != nil {
				return errPrint{err}
			}
			return nil
		}
	}
}

// lastLines returns the last lines of a text, and whether the text has more than these. The last line may
// lack its end.
func lastLines(text []byte, lines int64) (tail []byte, enough bool) {
	if lines <= 0 {
		return nil, true
	}
	for i := len(bytes.TrimSuffix(text, []byte("\n"))) - 1; i >= 0; i-- {
		if text[i] == '\n' {
			if lines--; lines == 0 {
				return text[i+1:], true
			}
		}
	}
	return text, false
}

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
	var outage cli.Silence
	var lostAt time.Time
	var ended time.Time // when the end of the task was observed
	for first := true; ; first = false {
		err := l.print(c.Ctx, true)
		if c.Ctx.Err() != nil || lasting(err) || first && answered(err) {
			return err
		}
		switch now := time.Now(); {
		case err != nil && !lost:
			lost, lostAt = true, now
			outage.Broken(now)
			fmt.Fprintf(c.Errs, "the log cannot be read, retrying: %v\n", err)
		case err != nil && outage.Over(now):
			fmt.Fprintln(c.Errs, cli.StillWaiting("the log: "+cli.AnAnswer(c.API), now.Sub(lostAt)))
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
