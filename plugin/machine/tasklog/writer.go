package tasklog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Limits bound the log of one stream.
type Limits struct {
	// MaxFiles is how many files are kept, the newest included. Zero is 10. For a moment there is one
	// more, because the next file is opened before the oldest is deleted.
	MaxFiles int
	// MaxFileSize is the largest size of a file, in bytes. Zero is 10 MiB. The smallest is 64.
	MaxFileSize int64
}

func (l Limits) withDefaults() (Limits, error) {
	if l.MaxFiles == 0 {
		l.MaxFiles = 10
	}
	if l.MaxFileSize == 0 {
		l.MaxFileSize = 10 << 20
	}
	if l.MaxFiles < 1 || l.MaxFileSize < 64 {
		return l, fmt.Errorf("a log needs at least one file of 64 bytes, not %d of %d", l.MaxFiles, l.MaxFileSize)
	}
	return l, nil
}

// Writer writes one stream to a row of files. It is for one goroutine.
//
// Invariant: all files from oldest to newest exist, except those that others deleted.
type Writer struct {
	folder folder
	name   string
	limits Limits

	file           io.WriteCloser // the newest file
	size           int64          // of the newest file
	lineStart      bool           // whether the next byte begins a line
	full           bool           // whether the next byte belongs to the next file
	overdue        bool           // whether the last rotation failed, so that the newest file grows
	oldest, newest int
}

// Open opens the newest file of a log in the folder, or creates the first one, and deletes files
// beyond the limit. The name is a single path element, for example "web.stdout". The caller keeps the
// folder open until it has closed the writer.
func Open(dir *os.Root, name string, limits Limits) (*Writer, error) {
	return open(rootFolder{dir}, name, limits)
}

func open(in folder, name string, limits Limits) (*Writer, error) {
	limits, err := limits.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	oldest, newest, found, err := numbers(in, name)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	w := &Writer{folder: in, name: name, limits: limits, oldest: oldest, newest: newest}
	if found {
		w.file, w.size, w.lineStart, err = in.resume(w.fileName(newest))
	} else {
		w.lineStart = true
		w.file, err = in.create(w.fileName(newest))
	}
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	w.prune()
	return w, nil
}

// numbers returns the smallest and the largest number of the log's files.
func numbers(in folder, name string) (oldest, newest int, found bool, err error) {
	names, err := in.list()
	for _, file := range names {
		digits, ok := strings.CutPrefix(file, name+".")
		n, bad := strconv.Atoi(digits)
		if !ok || bad != nil || strconv.Itoa(n) != digits {
			continue
		}
		if !found {
			oldest, newest, found = n, n, true
		}
		oldest, newest = min(oldest, n), max(newest, n)
	}
	return oldest, newest, found, err
}

func (w *Writer) fileName(n int) string { return w.name + "." + strconv.Itoa(n) }

// near is how close to its limit a file ends at a line end.
func (w *Writer) near() int64 { return min(2000, w.limits.MaxFileSize/8) }

// Append writes p to the newest file, and continues in the next one when a file is full. A file ends
// at a line end, unless a line is longer than a file or comes in parts. If the next file cannot be
// opened, the old one grows until it can. After an error, n bytes are in the log, and the caller may
// write the rest later.
func (w *Writer) Append(p []byte) (n int, err error) {
	for len(p) > 0 {
		if w.full {
			w.full = false
			if w.rotate() != nil {
				wrote, err := w.write(p)
				return n + wrote, err
			}
		}
		var cut int
		cut, w.full = w.cut(p)
		wrote, err := w.write(p[:cut])
		n += wrote
		p = p[wrote:]
		if err != nil {
			w.full = false
			return n, err
		}
	}
	return n, nil
}

// cut returns how much of p belongs to the newest file, and whether the file is full then.
func (w *Writer) cut(p []byte) (length int, full bool) {
	room := w.limits.MaxFileSize - w.size
	if int64(len(p)) <= room-w.near() {
		return len(p), false
	}
	if room <= 0 {
		if w.lineStart || !w.overdue {
			return 0, true
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			return len(p), false
		}
		return end + 1, true
	}
	fits := min(int64(len(p)), room)
	switch end := bytes.LastIndexByte(p[:fits], '\n'); {
	case end >= 0:
		return end + 1, true
	case w.lineStart && w.size > 0:
		return 0, true
	default: // A part of a line.
		return int(fits), fits == room
	}
}

func (w *Writer) write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := w.file.Write(p)
	if n > 0 {
		w.size += int64(n)
		w.lineStart = p[n-1] == '\n'
	}
	if err != nil {
		return n, fmt.Errorf("log %s: %w", w.name, err)
	}
	return n, nil
}

// rotate opens the next file, leaves the newest one, and deletes files beyond the limit. After an
// error the newest file stays in use.
func (w *Writer) rotate() error {
	next, err := w.folder.create(w.fileName(w.newest + 1))
	w.overdue = err != nil
	if errors.Is(err, fs.ErrExist) { // Not from this writer: use the number after it.
		w.newest++
	}
	if err != nil {
		return fmt.Errorf("log %s: rotate: %w", w.name, err)
	}
	_ = w.file.Close() // All writes were answered, and nothing is synced.
	w.file, w.size = next, 0
	w.newest++
	w.prune()
	return nil
}

// prune deletes the files beyond the limit, oldest first. It stops at an error, and the next rotation
// tries again. A folder that is not empty is not from this log, and stays.
func (w *Writer) prune() {
	for w.newest-w.oldest >= w.limits.MaxFiles {
		if err := w.folder.remove(w.fileName(w.oldest)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return
		}
		w.oldest++
	}
}

// Close closes the newest file.
func (w *Writer) Close() error { return w.file.Close() }

// folder is where a log lies.
type folder interface {
	// list returns the names of all files.
	list() ([]string, error)
	// create makes a new file, or fails with [fs.ErrExist].
	create(name string) (io.WriteCloser, error)
	// resume opens a file to append to it, and returns its size and whether it ends at a line end.
	resume(name string) (file io.WriteCloser, size int64, lineStart bool, err error)
	remove(name string) error
}

// rootFolder is a folder on disk. Its files are readable by their owner only.
type rootFolder struct{ dir *os.Root }

func (f rootFolder) list() ([]string, error) {
	dir, err := f.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (f rootFolder) create(name string) (io.WriteCloser, error) {
	return f.dir.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
}

// resume refuses everything but a regular file with one name: a task that may write to the folder
// must not direct its log elsewhere.
func (f rootFolder) resume(name string) (_ io.WriteCloser, size int64, lineStart bool, err error) {
	before, err := f.dir.Lstat(name)
	if err != nil {
		return nil, 0, false, err
	}
	file, err := f.dir.OpenFile(name, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, false, err
	}
	info, err := file.Stat()
	if err == nil && !(os.SameFile(before, info) && ownFile(info)) {
		err = fmt.Errorf("%s is not a regular file with one name", name)
	}
	lineStart = true
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		_, err = file.ReadAt(last, info.Size()-1)
		lineStart = last[0] == '\n'
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, false, err
	}
	return file, info.Size(), lineStart, nil
}

func ownFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && ok && stat.Nlink == 1
}

func (f rootFolder) remove(name string) error { return f.dir.Remove(name) }
