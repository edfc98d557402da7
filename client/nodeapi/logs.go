package nodeapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// logRequest is a request for the log of one stream of a task.
type logRequest struct {
	alloc, task, stream string
	follow, plain       bool
	fromEnd             bool
	offset              int64
	// file is the file at which a caller continues that has lost its stream, or empty.
	file string
}

func logRequestOf(alloc string, q *query) (*logRequest, error) {
	l := &logRequest{alloc: alloc, task: q.text("task"), stream: q.text("type"), file: strings.TrimPrefix(q.text("file"), logFolder)}
	if l.task == "" {
		q.refuse("task: it is missing")
	}
	if l.stream != "stdout" && l.stream != "stderr" {
		q.refuse("type: %q is neither stdout nor stderr", l.stream)
	}
	if _, is := tasklog.FileNumber(l.name(), l.file); l.file != "" && !is {
		q.refuse("file: %q is not a file of this log, such as %q", l.file, l.name()+".0")
	}
	l.follow, l.plain, l.fromEnd, l.offset = q.flag("follow", false), q.flag("plain", false), q.fromEnd(), q.offset()
	return l, q.err
}

// name is the name of the log, without the numbers of its files.
func (l *logRequest) name() string { return allocdir.TaskFolder(l.task) + "." + l.stream }

// begin returns where the caller begins to read.
func (l *logRequest) begin(files *tasklog.Files, waited bool) tasklog.Position {
	number, named := tasklog.FileNumber(l.name(), l.file)
	switch {
	case named:
		return tasklog.Position{File: number, Offset: l.offset}
	case waited:
		return files.FromStart(0) // All of the log is new.
	case l.fromEnd:
		return files.FromEnd(l.offset)
	}
	return files.FromStart(l.offset)
}

// logFolder begins the paths of logs in an allocation.
const logFolder = "alloc/logs/"

// logFiles is the source of a log.
type logFiles struct{ *tasklog.Reader }

func (l logFiles) at() (string, int64) { return logFolder + l.FileName(), l.Position().Offset }

// logs sends the log of a task.
func (h *reader) logs(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	alloc, tasks, _, err := h.allocation(r)
	if err != nil {
		return err
	}
	l, err := logRequestOf(alloc, q)
	if err != nil {
		return err
	}
	if _, err := stateOf(alloc, tasks, l.task); err != nil {
		return err
	}
	f := newSender(w, l.plain)
	defer f.end()
	dir, files, waited, err := h.openLog(r.Context(), f, l)
	if err != nil || dir == nil {
		return err
	}
	defer dir.Close()
	reader := tasklog.NewReader(dir, l.name(), l.begin(files, waited))
	defer reader.Close()
	if !l.follow {
		end := files.End()
		if err := h.drain(r.Context(), f, logFiles{reader}, func() bool { return !reader.Position().Before(end) }); err != nil {
			return err
		}
		return f.begin()
	}
	changed, stop := h.watch(dir, func(name string) bool {
		_, is := tasklog.FileNumber(l.name(), name)
		return is
	})
	defer stop()
	return h.follow(r.Context(), f, logFiles{reader}, changed, func() (bool, <-chan struct{}) { return h.over(l) })
}

// over reports whether nothing will be added to a log.
func (h *reader) over(l *logRequest) (bool, <-chan struct{}) {
	tasks, changed, known := h.options.Roster.Tasks(l.alloc)
	if !known {
		return true, changed
	}
	task, err := stateOf(l.alloc, tasks, l.task)
	return err != nil || task.Dead, changed
}

// openLog finds the files of a log. A caller that follows a task waits for the first one; without a
// folder and without an error, the task has ended before it had a log, or the caller has left.
func (h *reader) openLog(ctx context.Context, f *sender, l *logRequest) (dir *os.Root, files *tasklog.Files, waited bool, err error) {
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for {
		over, changed := h.over(l)
		dir, files, err = h.findLog(l)
		switch {
		case err == nil:
			return dir, files, waited, nil
		case !errors.Is(err, tasklog.ErrNoLog) && !errors.Is(err, allocdir.ErrNoAlloc) && !errors.Is(err, fs.ErrNotExist):
			return nil, nil, false, f.broken(refuseFile(l.alloc, logFolder, err))
		case over && f.begun:
			return nil, nil, false, nil
		case over:
			return nil, nil, false, refuse(http.StatusNotFound, fmt.Sprintf("task %q has ended and has no %s log", l.task, l.stream))
		case !l.follow:
			return nil, nil, false, refuse(http.StatusNotFound, fmt.Sprintf("task %q has not started yet: it has no %s log", l.task, l.stream))
		}
		if err := f.begin(); err != nil {
			return nil, nil, false, err
		}
		waited = true
		select {
		case <-ctx.Done():
			return nil, nil, false, nil
		case <-changed:
		case <-beat.C:
			if err := f.beat(); err != nil {
				return nil, nil, false, err
			}
		}
	}
}

func (h *reader) findLog(l *logRequest) (*os.Root, *tasklog.Files, error) {
	dir, err := h.options.Dirs.OpenLogs(l.alloc)
	if err != nil {
		return nil, nil, err
	}
	files, err := tasklog.List(dir, l.name())
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, files, nil
}
