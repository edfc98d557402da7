package nodeapi

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// source is a file, or a row of files, that may grow.
type source interface {
	// Next reads what follows. [io.EOF] means that there is nothing at present.
	Next(p []byte) (int, error)
	// at returns the name of the file and the position after what was read.
	at() (file string, offset int64)
}

// errDeleted means that the file was deleted, and all of it was read.
var errDeleted = errors.New("file deleted")

// drain sends what a source has at present. It returns [errDeleted] if no more can follow. The enough
// function reports when a reader that does not follow has all that it came for.
func (h *reader) drain(ctx context.Context, f *sender, s source, enough func() bool) error {
	p := h.piece()
	defer h.pieces.Put(p)
	for ctx.Err() == nil && !enough() {
		n, err := s.Next(p.data)
		file, offset := s.at()
		if n > 0 {
			if err := f.data(p, n, file, offset); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errDeleted):
			return errors.Join(f.event(file, err.Error()), err)
		case errors.Is(err, tasklog.ErrRemoved):
			err = f.event(file, tasklog.ErrRemoved.Error())
		case errors.Is(err, tasklog.ErrTruncated):
			err = f.event(file, tasklog.ErrTruncated.Error())
		}
		if err != nil {
			return f.broken(err)
		}
	}
	return nil
}

func never() bool { return false }

// follow sends what a source has and what follows, until the caller leaves, the file is deleted, or nothing
// can follow. Over is called before each read of the source, and returns a channel that is closed when a
// later call may return another value.
func (h *reader) follow(ctx context.Context, f *sender, s source, changed <-chan struct{}, over func() (bool, <-chan struct{})) error {
	if err := f.begin(); err != nil {
		return err
	}
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for {
		last, changes := over()
		if err := h.drain(ctx, f, s, never); err != nil {
			return err
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-changes:
		case <-beat.C:
			if err := f.beat(); err != nil {
				return err
			}
		}
	}
}

// growing is one file that may grow.
type growing struct {
	file   *allocdir.File
	name   string
	offset int64
	// deleted: the file has no name left, so that one more read reaches its end.
	deleted bool
}

func (g *growing) at() (string, int64) { return g.name, g.offset }

// Next implements [source].
func (g *growing) Next(p []byte) (int, error) {
	for {
		n, err := g.file.ReadAt(p, g.offset)
		g.offset += int64(n)
		switch {
		case n > 0:
			return n, nil
		case !errors.Is(err, io.EOF):
			return 0, err
		case g.deleted:
			return 0, errDeleted
		}
		info, err := g.file.Stat()
		if err != nil {
			return 0, err
		}
		if info.Size() < g.offset {
			g.offset = 0
			return 0, tasklog.ErrTruncated
		}
		stat, is := info.Sys().(*syscall.Stat_t)
		if !is || stat.Nlink > 0 {
			return 0, io.EOF
		}
		g.deleted = true
	}
}
