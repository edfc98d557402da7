package tasklog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Errors of a [Reader] that are changes and end nothing: the next call reads on.
var (
	// ErrRemoved means that files were removed before they were read. The log goes on with the oldest
	// file that is left.
	ErrRemoved = errors.New("files of this log were removed before they were read")
	// ErrTruncated means that the file became shorter. The log goes on with its beginning.
	ErrTruncated = errors.New("file truncated")
)

// ErrNoLog means that a log has no file.
var ErrNoLog = errors.New("there is no such log")

// Position is a place in a log.
type Position struct {
	// File is the number of a file, and Offset counts bytes in it.
	File   int
	Offset int64
}

// Files are the files of a log at one time.
type Files struct {
	// numbers are in order, and sizes belong to them.
	numbers []int
	sizes   []int64
}

// maxListed bounds the names that a look into a folder of logs reads. A task of the client's user may
// write there.
const maxListed = 100_000

// List finds the files of a log. The folder is open. The error is [ErrNoLog] if there is none.
func List(dir *os.Root, name string) (*Files, error) {
	numbers, err := numbersIn(dir, name)
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", name, err)
	}
	files := &Files{}
	for _, n := range numbers {
		info, err := dir.Lstat(fileName(name, n))
		if err != nil || !info.Mode().IsRegular() {
			continue // It is gone, or others made it.
		}
		files.numbers, files.sizes = append(files.numbers, n), append(files.sizes, info.Size())
	}
	if len(files.numbers) == 0 {
		return nil, ErrNoLog
	}
	return files, nil
}

// numbersIn returns the numbers of a log's files, in order.
func numbersIn(root *os.Root, name string) ([]int, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var all []int
	for _, file := range names {
		if n, is := FileNumber(name, file); is {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, nil
}

// FromStart returns the position this many bytes after the beginning of the oldest file, at most the
// end.
func (f *Files) FromStart(offset int64) Position {
	last := len(f.numbers) - 1
	for i, size := range f.sizes {
		if offset < size || i == last {
			return Position{f.numbers[i], min(offset, size)}
		}
		offset -= size
	}
	return Position{}
}

// FromEnd returns the position this many bytes before the end, at least the beginning.
func (f *Files) FromEnd(offset int64) Position {
	for i := len(f.numbers) - 1; i >= 0; i-- {
		if offset <= f.sizes[i] {
			return Position{f.numbers[i], f.sizes[i] - offset}
		}
		offset -= f.sizes[i]
	}
	return Position{File: f.numbers[0]}
}

// End returns the position after the last byte.
func (f *Files) End() Position { return f.FromEnd(0) }

// Before reports whether p is before another position.
func (p Position) Before(other Position) bool {
	return p.File < other.File || p.File == other.File && p.Offset < other.Offset
}

func fileName(name string, n int) string { return name + "." + strconv.Itoa(n) }

// FileNumber returns the number in the name of a log's file.
func FileNumber(name, file string) (int, bool) {
	digits, is := strings.CutPrefix(file, name+".")
	n, err := strconv.Atoi(digits)
	return n, is && err == nil && n >= 0 && strconv.Itoa(n) == digits
}

// Reader reads a log while a [Writer] of any process writes it. It holds one file open. It is for one
// goroutine.
type Reader struct {
	dir  *os.Root
	name string
	next Position // of the next byte
	file *os.File // that has it, or nil
	// left: a newer file exists, so that no byte follows the present end of this one.
	left bool
}

// NewReader returns a reader that begins at a position. The caller keeps the folder open until it has
// closed the reader.
func NewReader(dir *os.Root, name string, from Position) *Reader {
	return &Reader{dir: dir, name: name, next: from}
}

// Position returns the position of the next byte.
func (r *Reader) Position() Position { return r.next }

// FileName returns the name of the file that has the next byte.
func (r *Reader) FileName() string { return fileName(r.name, r.next.File) }

// Next reads from one file. It returns [io.EOF] if there is nothing to read at present: then the next
// call may have more. [ErrRemoved] and [ErrTruncated] are changes.
func (r *Reader) Next(p []byte) (int, error) {
	for {
		if r.file == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
		}
		n, err := r.file.ReadAt(p, r.next.Offset)
		r.next.Offset += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, r.fail(err)
		}
		if r.left {
			r.close()
			r.next = Position{File: r.next.File + 1}
			continue
		}
		if err := r.atEnd(); err != nil {
			return 0, err
		}
	}
}

// atEnd finds out what follows the end of the open file: nil means that it sees more to read.
func (r *Reader) atEnd() error {
	info, err := r.file.Stat()
	if err != nil {
		return r.fail(err)
	}
	if info.Size() < r.next.Offset {
		r.next.Offset = 0
		return ErrTruncated
	}
	_, err = r.dir.Lstat(fileName(r.name, r.next.File+1))
	stat, is := info.Sys().(*syscall.Stat_t)
	switch removed := is && stat.Nlink == 0; {
	case err == nil, removed:
		// The writer opens the next file after its last write to this one.
		r.left = true
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return io.EOF
	default:
		return r.fail(err)
	}
}

// open opens the file of the next byte. If it is gone, the oldest one after it takes its place.
func (r *Reader) open() error {
	file, err := r.regular(r.next.File)
	if err == nil {
		r.file, r.left = file, false
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return r.fail(err)
	}
	files, err := List(r.dir, r.name)
	if errors.Is(err, ErrNoLog) {
		return io.EOF
	}
	if err != nil {
		return err
	}
	for _, n := range files.numbers {
		if n > r.next.File {
			r.next = Position{File: n}
			return ErrRemoved
		}
	}
	return io.EOF
}

// regular opens one file of the log, and nothing that others put in its place.
func (r *Reader) regular(n int) (*os.File, error) {
	name := fileName(r.name, n)
	before, err := r.dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := r.dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s changed while it was opened", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (r *Reader) fail(err error) error { return fmt.Errorf("log %s: %w", r.name, err) }

func (r *Reader) close() {
	if r.file != nil {
		_ = r.file.Close() // It was only read.
		r.file = nil
	}
}

// Close closes the file.
func (r *Reader) Close() { r.close() }
