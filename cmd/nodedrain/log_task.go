package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// taskLog reads the log of a task and prints it. It belongs to one goroutine.
type taskLog struct {
	alloc  client.Alloc
	task   string
	stderr bool
	out    io.Writer
	// at is the place after what was printed or left out.
	at logPlace
	// heard is called when a read has begun to be answered, or is nil.
	heard func()
}

// errMoved says that the node has deleted a file of the log while it was asked for a place in the log.
var errMoved = errors.New("the log was rotated meanwhile")

// name is the name of the log's files without the number.
func (l *taskLog) name() string {
	if l.stderr {
		return l.task + ".stderr"
	}
	return l.task + ".stdout"
}

// print prints the log from the place where the last call ended. With follow it waits for more. It returns
// nil when the node ends the log.
func (l *taskLog) print(ctx context.Context, follow bool) error {
	return l.read(ctx, follow, func(data []byte) error {
		_, err := l.out.Write(data)
		return err
	})
}

// errPrint is a failure to print. To read again does not help.
type errPrint struct{ error }

// read takes in the log from the place where it is.
func (l *taskLog) read(ctx context.Context, follow bool, take func([]byte) error) error {
	query := client.LogsQuery{Task: l.task, Stderr: l.stderr, Follow: follow}
	expected := logPlace{}
	if l.at.known {
		files, err := readLogFiles(ctx, l.alloc, l.name())
		if err != nil {
			return err
		}
		query.Offset = files.offset(l.at)
		if expected = files.place(query.Offset); len(files) > 0 && expected.file >= l.at.file {
			l.at = expected // at the end of a file it is the start of the next one
		}
	}
	firstFrame := true
	for frame, err := range l.alloc.Logs(ctx, query) {
		if err != nil {
			return err
		}
		after := l.at.moved(l.name(), frame)
		if firstFrame && after.file != expected.file && expected.offset > 0 {
			return errMoved // the offset is that of an older row of files
		}
		if l.heard != nil && firstFrame {
			l.heard()
		}
		firstFrame, l.at = false, after
		if err := take(frame.Data); err != nil {
			return errPrint{err}
		}
	}
	return nil
}

// skipToLast leaves out all but the last bytes.
func (l *taskLog) skipToLast(ctx context.Context, n int64) error {
	files, err := readLogFiles(ctx, l.alloc, l.name())
	if err != nil {
		return err
	}
	l.at = files.place(max(files.size()-n, 0))
	return nil
}

// The last lines are looked for in the last bytes: first in lineGuess for each line, then in more, at most
// in mostTail.
const (
	lineGuess = 160
	mostTail  = 4 << 20
)

// lastLines prints the last lines.
func (l *taskLog) lastLines(ctx context.Context, lines int64) error {
	for size := min(max(lines, 1), mostTail/lineGuess) * lineGuess; ; size = min(4*size, mostTail) {
		if err := l.skipToLast(ctx, size); err != nil {
			return err
		}
		var text []byte
		err := l.read(ctx, false, func(data []byte) error {
			text = append(text, data...)
			text = text[max(0, len(text)-mostTail):]
			return nil
		})
		if err != nil {
			return err
		}
		tail, enough := lastLines(text, lines)
		if enough || int64(len(text)) < size || size == mostTail {
			_, err := l.out.Write(tail)
			return err
		}
	}
}

// lastLines returns the last lines of a text, and whether a line before them was cut off. The last line may
// lack its end.
func lastLines(text []byte, lines int64) (tail []byte, enough bool) {
	end := len(bytes.TrimSuffix(text, []byte("\n")))
	if lines <= 0 {
		return nil, true
	}
	for i := end - 1; i >= 0; i-- {
		if text[i] == '\n' {
			if lines--; lines == 0 {
				return text[i+1:], true
			}
		}
	}
	return text, false
}
