package tasklog

import (
	"io"
	"os"
	"syscall"
)

// Folder is where a log lies, with functions that tests replace.
type Folder struct {
	Real folder
	// Before runs before each change of the folder and before each write, and may refuse it.
	Before func(operation string) error
	// Wrote gets what was written to the files. It may be nil.
	Wrote func([]byte)
}

// OpenIn opens a log in a folder of a test.
func OpenIn(f Folder, name string, limits Limits) (*Writer, error) { return open(f, name, limits) }

// OnDisk returns a folder on disk.
func OnDisk(dir *os.Root) Folder {
	return Folder{Real: rootFolder{dir}, Before: func(string) error { return nil }}
}

// Sizes of the buffers.
const (
	BufferSize = bufferSize
	RetryAfter = retryAfter
)

func (f Folder) list() ([]string, error) { return f.Real.list() }

func (f Folder) create(name string) (io.WriteCloser, error) {
	if err := f.Before("create"); err != nil {
		return nil, err
	}
	file, err := f.Real.create(name)
	return watched{file, f}, err
}

func (f Folder) resume(name string) (io.WriteCloser, int64, bool, error) {
	file, size, lineStart, err := f.Real.resume(name)
	return watched{file, f}, size, lineStart, err
}

func (f Folder) remove(name string) error {
	if err := f.Before("remove"); err != nil {
		return err
	}
	return f.Real.remove(name)
}

type watched struct {
	io.WriteCloser
	folder Folder
}

func (w watched) Write(p []byte) (int, error) {
	if err := w.folder.Before("write"); err != nil {
		// A full disk takes a part of a write.
		n, _ := w.WriteCloser.Write(p[:len(p)/2])
		return n, err
	}
	n, err := w.WriteCloser.Write(p)
	if w.folder.Wrote != nil {
		w.folder.Wrote(p[:n])
	}
	return n, err
}

func (w watched) Close() error {
	if err := w.folder.Before("close"); err != nil {
		return err
	}
	return w.WriteCloser.Close()
}

// LineStart reports whether the next byte begins a line.
func (w *Writer) LineStart() bool { return w.lineStart }

// CopyPieces returns a function that copies a piece from a pipe with data to the log, as [Log.Copy] does.
func (l *Log) CopyPieces(pipe *os.File) (once func() error, end func(), err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var view [2]int
	if err := syscall.Pipe2(view[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, nil, err
	}
	c := newCopier(l, raw, view)
	return func() error { return c.once(true) }, func() { _ = syscall.Close(view[0]); _ = syscall.Close(view[1]) }, nil
}

// AtEnd is the part of [Reader.Next] after a read that found the end of the file.
func (r *Reader) AtEnd() error { return r.atEnd() }
