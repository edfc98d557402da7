package datacopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth bounds the folders above an entry. Sender and receiver have each of them open.
	maxDepth = 256
	// maxNames bounds the entries of one folder, and maxLinked the files with several hard links that
	// the sender remembers. It sends others as separate files.
	maxNames  = 4 << 20
	maxLinked = 1 << 20
	// segment is the longest part of a file in one entry, in bytes.
	segment = 1 << 20
	// minHole is the shortest hole that is kept, in bytes.
	minHole = 64 << 10
)

// The records of the archive.
const (
	offsetRecord  = "NODEDRAIN.offset"
	sizeRecord    = "NODEDRAIN.size"
	skippedRecord = "NODEDRAIN.skipped"
	mountsRecord  = "NODEDRAIN.mounts"
	errorRecord   = "NODEDRAIN.error"
)

// Source is a folder to send.
type Source struct {
	// Name begins the paths of its entries, such as "alloc/data".
	Name string
	Root *os.Root
	// Owner returns the name of the tasks' user with this number, or an empty string.
	Owner func(uid uint32) string
}

// Send writes a stream with the content of the sources after a position. It sends the error if it cannot
// read a source, and returns it. No process should write the sources: a file that changes meanwhile
// arrives as a mixture of its contents.
func Send(ctx context.Context, w io.Writer, sources []Source, from Position) error {
	frames := newFrameWriter(w)
	s := &sender{ctx: ctx, archive: tar.NewWriter(frames), from: from, linked: map[inode]string{}}
	sources = slices.Clone(sources)
	slices.SortFunc(sources, func(a, b Source) int { return comparePaths(a.Name, b.Name) })
	records := map[string]string{}
	var failed error
	for _, source := range sources {
		if failed = s.source(source); failed != nil {
			failed = fmt.Errorf("sending %s: %w", source.Name, failed)
			records[errorRecord] = failed.Error()
			break
		}
	}
	if s.failed != nil {
		return failed // the stream is cut already
	}
	records[skippedRecord] = strconv.FormatInt(s.skipped, 10)
	if len(s.mounts) > 0 {
		records[mountsRecord] = namesOf(s.mounts)
	}
	return errors.Join(failed, s.header(&tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: records}), s.archive.Close(), frames.end())
}

// maxMounts bounds the names of mount points in a stream.
const maxMounts = 3

// namesOf names mount points for operators.
func namesOf(mounts []string) string {
	var names []string
	for _, at := range mounts[:min(len(mounts), maxMounts)] {
		names = append(names, strconv.Quote(at))
	}
	text := strings.Join(names, ", ")
	if more := len(mounts) - maxMounts; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// inode identifies a file on the machine.
type inode struct{ device, number uint64 }

type sender struct {
	ctx     context.Context
	archive *tar.Writer
	from    Position
	owner   func(uint32) string
	// device is the file system of the source. Others that are mounted below it are left out.
	device uint64
	// linked are the first paths of files with several hard links.
	linked  map[inode]string
	skipped int64
	// mounts are the paths of the other file systems, which count as skipped too.
	mounts []string
	buffer []byte
	// failed is the error of a write to the stream, or nil.
	failed error
}

// source sends the content of a source.
func (s *sender) source(source Source) error {
	info, err := source.Root.Stat(".")
	if err != nil {
		return err
	}
	s.owner, s.device = source.Owner, fileOf(info).device
	return s.folder(source.Root, source.Name, 0)
}

// fileOf returns the identity of a file of a real file system.
func fileOf(info fs.FileInfo) inode {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return inode{}
	}
	return inode{device: uint64(stat.Dev), number: stat.Ino}
}

// header writes the header of an entry.
func (s *sender) header(h *tar.Header) error {
	if err := s.archive.WriteHeader(h); err != nil {
		s.failed = err
		return err
	}
	return nil
}

// arrived reports whether the receiver has the entry, or the start of it.
func (s *sender) arrived(path string) bool { return comparePaths(path, s.from.Path) <= 0 }

// folder sends the content of a folder.
func (s *sender) folder(dir *os.Root, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d folders above %q", maxDepth, path)
	}
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if err := s.entry(dir, name, path+"/"+name, depth); err != nil {
			return err
		}
	}
	return nil
}

// readNames returns the names in a folder in the order of their bytes.
func readNames(dir *os.Root) ([]string, error) {
	open, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer open.Close()
	var names []string
	for {
		more, err := open.Readdirnames(1024)
		names = append(names, more...)
		switch {
		case len(names) > maxNames:
			return nil, fmt.Errorf("a folder has more than %d entries", maxNames)
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, err
		}
	}
}

// entry sends one entry of a folder.
func (s *sender) entry(dir *os.Root, name, path string, depth int) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed meanwhile
	}
	if err != nil {
		return err
	}
	h := &tar.Header{Name: path, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(time.Second)}
	if info.Mode()&fs.ModeSticky != 0 {
		h.Mode |= unix.S_ISVTX
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if known && s.owner != nil {
		h.Uname = s.owner(stat.Uid)
	}
	switch {
	case info.IsDir() && fileOf(info).device == s.device:
		return s.subfolder(dir, name, h, info, depth)
	case info.Mode().IsRegular():
		if known && stat.Nlink > 1 && s.link(h, fileOf(info)) {
			if s.arrived(path) {
				return nil
			}
			return s.header(h)
		}
		return s.file(dir, name, h, info)
	case info.Mode()&fs.ModeSymlink == 0:
		s.skipped++ // before the position too: the receiver takes the number of the last stream
		if info.IsDir() {
			s.mounts = append(s.mounts, path)
		}
	case !s.arrived(path):
		if h.Linkname, err = dir.Readlink(name); err != nil {
			return err
		}
		h.Typeflag = tar.TypeSymlink
		return s.header(h)
	}
	return nil
}

// link makes the header one of a hard link, if an earlier entry is the same file.
func (s *sender) link(h *tar.Header, file inode) bool {
	first, linked := s.linked[file]
	switch {
	case linked:
		h.Typeflag, h.Linkname = tar.TypeLink, first
	case len(s.linked) < maxLinked:
		s.linked[file] = h.Name
	}
	return linked
}

// subfolder sends a folder and its content. It reads a folder that has arrived too: hard links may lead there.
func (s *sender) subfolder(dir *os.Root, name string, h *tar.Header, info fs.FileInfo, depth int) error {
	path := h.Name
	if !s.arrived(path) {
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		if err := s.header(h); err != nil {
			return err
		}
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	if after, err := sub.Stat("."); err != nil || !os.SameFile(info, after) {
		return errors.Join(fmt.Errorf("changed while it was opened: %q", path), err)
	}
	return s.folder(sub, path, depth+1)
}

// file sends a regular file, in several entries if it is large or has holes.
func (s *sender) file(dir *os.Root, name string, h *tar.Header, info fs.FileInfo) error {
	at := int64(0)
	if s.arrived(h.Name) {
		if h.Name != s.from.Path || s.from.Offset >= info.Size() {
			return nil
		}
		at = s.from.Offset
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if after, err := file.Stat(); err != nil || !os.SameFile(info, after) {
		return errors.Join(fmt.Errorf("changed while it was opened: %q", h.Name), err)
	}
	if s.buffer == nil {
		s.buffer = make([]byte, segment)
	}
	size := info.Size()
	content := extents{file: file, size: size}
	h.Typeflag = tar.TypeReg
	for first := at == 0; first || at < size; first = false {
		start, end, err := content.next(at)
		if err != nil {
			return err
		}
		n, err := file.ReadAt(s.buffer[:end-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 && !first {
			return nil // the rest is a hole, or the file is shorter now
		}
		if err := s.part(*h, start, size, s.buffer[:n]); err != nil {
			return err
		}
		if at = start + int64(n); n == 0 {
			return nil
		}
	}
	return nil
}

// part sends a part of a file.
func (s *sender) part(h tar.Header, start, size int64, content []byte) error {
	h.Size = int64(len(content))
	if start != 0 || h.Size != size {
		h.PAXRecords = map[string]string{
			offsetRecord: strconv.FormatInt(start, 10),
			sizeRecord:   strconv.FormatInt(size, 10),
		}
	}
	if err := s.header(&h); err != nil {
		return err
	}
	if _, err := s.archive.Write(content); err != nil {
		s.failed = err
		return err
	}
	return nil
}

// extents finds the data and the holes of a file.
type extents struct {
	file *os.File
	size int64
	// from and to are an extent that is all data. It can be as long as the file, and a file system may need as
	// long to find its end.
	from, to int64
}

// next returns where the next data of a file begins, and where it ends or the next part begins. Both
// are the size of the file if no data follows. Short holes count as data.
func (e *extents) next(from int64) (start, end int64, err error) {
	start, err = e.data(from)
	if err != nil {
		return 0, 0, err
	}
	if start-from < minHole {
		start = from
	}
	limit := min(e.size, start+segment)
	for end = start; end < limit; {
		hole, err := e.hole(end)
		if err != nil {
			return 0, 0, err
		}
		next, err := e.data(hole)
		if err != nil {
			return 0, 0, err
		}
		if next-hole >= minHole || next == e.size {
			end = min(hole, limit)
			break
		}
		end = min(next, limit)
	}
	return start, end, nil
}

// data returns where the first data at or after an offset begins.
func (e *extents) data(at int64) (int64, error) {
	if e.from <= at && at < e.to {
		return at, nil
	}
	return seek(e.file, at, unix.SEEK_DATA, e.size)
}

// hole returns where the first hole at or after an offset begins.
func (e *extents) hole(at int64) (int64, error) {
	if e.from <= at && at < e.to {
		return e.to, nil
	}
	to, err := seek(e.file, at, unix.SEEK_HOLE, e.size)
	e.from, e.to = at, to
	return to, err
}

// seek finds data or a hole from an offset, or the size if there is none. A file system without holes has
// only data.
func seek(file *os.File, from int64, whence int, size int64) (int64, error) {
	if from >= size {
		return size, nil
	}
	at, err := unix.Seek(int(file.Fd()), from, whence)
	switch {
	case err == nil:
		return min(at, size), nil
	case errors.Is(err, unix.ENXIO):
		return size, nil
	case !errors.Is(err, unix.EINVAL):
		return 0, err
	case whence == unix.SEEK_DATA:
		return from, nil
	}
	return size, nil
}

// elements returns the elements of a path, or nil if one of them is no name of an entry.
func elements(path string) []string {
	names := strings.Split(path, "/")
	for _, name := range names {
		if name == "" || name == "." || name == ".." || len(name) > unix.NAME_MAX || strings.ContainsRune(name, 0) {
			return nil
		}
	}
	return names
}
