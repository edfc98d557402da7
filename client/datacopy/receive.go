package datacopy

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Errors of [Receiver.Receive] after which a further stream cannot help.
var (
	// ErrTooLarge means that the data is larger than the limit of the allocation.
	ErrTooLarge = errors.New("the data is larger than the limit")
	// ErrNoRoom means that the disk of the receiver has no room for the data.
	ErrNoRoom = errors.New("the disk has no room for the data")
	// ErrInvalid means that the stream has an entry that no sender of this package writes.
	ErrInvalid = errors.New("the stream of the data is invalid")
)

// ErrSource wraps the text with which the sender reports that it cannot read its folders.
var ErrSource = errors.New("the sender cannot read the data")

// Options are the options of a [Receiver].
type Options struct {
	// Into receives the folders. It is empty, and no task sees it. The caller closes it.
	Into *os.Root
	// Folders are the names of the folders to receive, such as "alloc/data". All others are invalid.
	Folders []string
	// MaxBytes bounds the bytes of all files. Holes do not count. Zero means that no file has content.
	MaxBytes int64
	// MaxEntries bounds the number of entries. Zero is 10,000,000.
	MaxEntries int64
	// Reserve is how many bytes the file system must have left. Zero is 64 MiB.
	Reserve int64
	// Owner returns the numbers of the user that owns an entry in a folder. The user is the name in the
	// stream, which may be empty or of no user of the tasks. Nil keeps the user of this process.
	Owner func(folder, user string) (uid, gid int)
}

// The bounds of a receiver with the zero value.
const (
	defaultEntries = 10_000_000
	defaultReserve = 64 << 20
)

// checkRoom is how many bytes and entries arrive between two looks at the free room of the disk.
const (
	checkRoomBytes   = 16 << 20
	checkRoomEntries = 1000
)

// Receiver writes what it receives into a folder. One goroutine calls Receive and Close.
// Progress may be called from others.
type Receiver struct {
	o Options
	// disk is the folder Into, for calls that need a descriptor.
	disk *os.File
	// dirs are the open folders from the one in Options.Folders to that of the last entry.
	dirs []openFolder
	file *openFile
	// unchecked counts bytes since the last look at the free room.
	unchecked int64

	mu       sync.Mutex
	progress Progress // guarded by mu
}

// entry is what is set on a file or a folder after its content is complete.
type entry struct {
	name   string // in its folder
	header *tar.Header
}

type openFolder struct {
	entry
	path string
	root *os.Root
}

type openFile struct {
	entry
	file *os.File
	path string
	size int64
	// written is where the last part of the file ends.
	written int64
}

// NewReceiver returns a receiver. The caller calls Close.
func NewReceiver(o Options) (*Receiver, error) {
	if o.MaxEntries == 0 {
		o.MaxEntries = defaultEntries
	}
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	disk, err := o.Into.Open(".")
	if err != nil {
		return nil, fmt.Errorf("receiving data: %w", err)
	}
	for _, folder := range o.Folders {
		if err := o.Into.MkdirAll(folder, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("receiving data: %w", room(err)), disk.Close())
		}
	}
	return &Receiver{o: o, disk: disk}, nil
}

// Close closes all files. What was received stays.
func (r *Receiver) Close() error {
	var errs []error
	if r.file != nil {
		errs = append(errs, r.file.file.Close())
		r.file = nil
	}
	for _, d := range r.dirs {
		errs = append(errs, d.root.Close())
	}
	r.dirs = nil
	return errors.Join(append(errs, r.disk.Close())...)
}

// Progress returns what was received so far.
func (r *Receiver) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// Receive reads a stream that begins at the position of Progress. Nil means that all data is there and is
// durable. After [ErrTooLarge], [ErrNoRoom] and [ErrInvalid] the caller gives up. After any other error it may
// call Receive with a further stream.
func (r *Receiver) Receive(ctx context.Context, stream io.Reader) error {
	if err := r.receive(ctx, stream); err != nil {
		return fmt.Errorf("receiving data: %w", room(err))
	}
	return nil
}

func (r *Receiver) receive(ctx context.Context, stream io.Reader) error {
	frames := newFrameReader(stream)
	archive := tar.NewReader(frames)
	var failed error
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && failed != nil:
			return failed
		case errors.Is(err, io.EOF):
			return r.finish(frames)
		case errors.Is(err, tar.ErrHeader), errors.Is(err, tar.ErrFieldTooLong):
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		case err != nil:
			return err
		case h.Typeflag == tar.TypeXGlobalHeader:
			if failed, err = r.global(h); err != nil {
				return err
			}
		default:
			if err := r.entry(h, archive); err != nil {
				return fmt.Errorf("%w: %q", err, h.Name) // a text that is too long loses its end
			}
		}
	}
}

// global takes in what the sender reports at the end.
func (r *Receiver) global(h *tar.Header) (failed, err error) {
	if text, is := h.PAXRecords[errorRecord]; is {
		return fmt.Errorf("%w: %s", ErrSource, text), nil
	}
	skipped, err := number(h, skippedRecord, 0)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Skipped, r.progress.Mounts = skipped, strings.ToValidUTF8(h.PAXRecords[mountsRecord], "?")
	return nil, nil
}

// number returns the value of a record that counts bytes or files, or what it is without the record.
func number(h *tar.Header, record string, without int64) (int64, error) {
	text, is := h.PAXRecords[record]
	if !is {
		return without, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s is %q", ErrInvalid, record, text)
	}
	return n, nil
}

// entry writes an entry of the archive.
func (r *Receiver) entry(h *tar.Header, content io.Reader) error {
	at := strings.TrimSuffix(h.Name, "/")
	folder, err := r.check(at)
	if err != nil {
		return err
	}
	if r.file != nil && r.file.path == at && h.Typeflag == tar.TypeReg {
		return r.part(h, content)
	}
	if comparePaths(at, r.Progress().At.Path) <= 0 {
		return fmt.Errorf("%w: it is not after %q", ErrInvalid, r.Progress().At.Path)
	}
	if err := r.count(); err != nil {
		return err
	}
	if err := r.enter(folder, path.Dir(at)); err != nil {
		return err
	}
	dir, e := r.dirs[len(r.dirs)-1].root, entry{name: path.Base(at), header: h}
	switch h.Typeflag {
	case tar.TypeDir:
		err = r.makeFolder(dir, e, at)
	case tar.TypeReg:
		return r.begin(dir, e, at, content)
	case tar.TypeSymlink:
		err = r.symlink(dir, e)
	case tar.TypeLink:
		if _, err := r.check(h.Linkname); err != nil {
			return err
		}
		if err = r.o.Into.Link(h.Linkname, at); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: a hard link leads to %q, which has not arrived", ErrInvalid, h.Linkname)
		}
	default:
		err = fmt.Errorf("%w: its type is %q", ErrInvalid, h.Typeflag)
	}
	if err == nil {
		r.arrived(Position{Path: at})
	}
	return err
}

// check checks a path, and returns the folder of the options that it is in.
func (r *Receiver) check(at string) (string, error) {
	names := elements(at)
	i := slices.IndexFunc(r.o.Folders, func(f string) bool { return below(at, f) })
	switch {
	case i < 0:
		return "", fmt.Errorf("%w: it is in no folder that was requested", ErrInvalid)
	case names == nil || len(names) > maxDepth+strings.Count(r.o.Folders[i], "/")+2:
		return "", fmt.Errorf("%w: it is no path of an entry", ErrInvalid)
	}
	return r.o.Folders[i], nil
}

// count counts an entry.
func (r *Receiver) count() error {
	r.mu.Lock()
	r.progress.Entries++
	n := r.progress.Entries
	r.mu.Unlock()
	if n > r.o.MaxEntries {
		return fmt.Errorf("%w: it has more than %d entries", ErrTooLarge, r.o.MaxEntries)
	}
	if n%checkRoomEntries == 1 {
		return r.checkRoom()
	}
	return nil
}

// checkRoom checks that the file system has room left.
func (r *Receiver) checkRoom() error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(r.disk.Fd()), &stat); err != nil {
		return err
	}
	if free := stat.Bavail * uint64(stat.Bsize); free < uint64(r.o.Reserve) {
		return fmt.Errorf("%w: %d bytes are free, and %d must stay free", ErrNoRoom, free, r.o.Reserve)
	}
	return nil
}

// arrived stores the position.
func (r *Receiver) arrived(at Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.At = at
}

// enter makes the folder at a path the last of the open folders. Folders before the path are complete.
func (r *Receiver) enter(folder, at string) error {
	if err := r.closeFile(); err != nil {
		return err
	}
	for len(r.dirs) > 0 {
		last := r.dirs[len(r.dirs)-1]
		if last.path == at {
			return nil
		}
		if below(at, last.path) {
			break
		}
		if err := r.leave(); err != nil {
			return err
		}
	}
	if len(r.dirs) > 0 || at != folder {
		return fmt.Errorf("%w: its folder has not arrived", ErrInvalid)
	}
	root, err := r.o.Into.OpenRoot(folder)
	if err != nil {
		return err
	}
	r.dirs = append(r.dirs, openFolder{path: folder, root: root})
	return nil
}

// leave completes the last of the open folders.
func (r *Receiver) leave() error {
	last := len(r.dirs) - 1
	d := r.dirs[last]
	r.dirs = r.dirs[:last]
	if err := d.root.Close(); err != nil || last == 0 {
		return err
	}
	return r.set(r.dirs[last-1].root, d.entry)
}

// set sets owner, permissions and time of an entry whose content is complete.
func (r *Receiver) set(dir *os.Root, e entry) error {
	if err := r.setOwner(dir, e); err != nil {
		return err
	}
	mode := fs.FileMode(e.header.Mode) & fs.ModePerm
	if e.header.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	if err := dir.Chmod(e.name, mode); err != nil {
		return err
	}
	return dir.Chtimes(e.name, e.header.ModTime, e.header.ModTime)
}

func (r *Receiver) setOwner(dir *os.Root, e entry) error {
	if r.o.Owner == nil {
		return nil
	}
	uid, gid := r.o.Owner(r.dirs[0].path, e.header.Uname)
	return dir.Lchown(e.name, uid, gid)
}

func (r *Receiver) makeFolder(dir *os.Root, e entry, at string) error {
	if err := dir.Mkdir(e.name, 0o700); err != nil {
		return err
	}
	root, err := dir.OpenRoot(e.name)
	if err != nil {
		return err
	}
	r.dirs = append(r.dirs, openFolder{entry: e, path: at, root: root})
	return nil
}

func (r *Receiver) symlink(dir *os.Root, e entry) error {
	if target := e.header.Linkname; target == "" || len(target) >= unix.PathMax || strings.ContainsRune(target, 0) {
		return fmt.Errorf("%w: it links to no path", ErrInvalid)
	}
	if err := dir.Symlink(e.header.Linkname, e.name); err != nil {
		return err
	}
	return r.setOwner(dir, e)
}

// begin creates a file, and writes its first part.
func (r *Receiver) begin(dir *os.Root, e entry, at string, content io.Reader) error {
	size, err := number(e.header, sizeRecord, e.header.Size)
	if err != nil {
		return err
	}
	file, err := dir.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	r.file = &openFile{entry: e, file: file, path: at, size: size}
	r.arrived(Position{Path: at})
	if err := file.Truncate(size); err != nil {
		return err
	}
	return r.part(e.header, content)
}

// part writes a part of the open file.
func (r *Receiver) part(h *tar.Header, content io.Reader) error {
	offset, err := number(h, offsetRecord, 0)
	if err != nil {
		return err
	}
	if offset < r.file.written || offset > r.file.size || h.Size > r.file.size-offset {
		return fmt.Errorf("%w: a part is at %d, has %d bytes, and follows %d of %d bytes", ErrInvalid, offset, h.Size, r.file.written, r.file.size)
	}
	if h.Size > r.o.MaxBytes-r.Progress().Bytes {
		return fmt.Errorf("%w of %d bytes", ErrTooLarge, r.o.MaxBytes)
	}
	buffer := make([]byte, min(h.Size, maxFrame))
	for at, end := offset, offset+h.Size; at < end; {
		n, failed := content.Read(buffer[:min(int64(len(buffer)), end-at)])
		if n > 0 {
			if err := r.write(buffer[:n], at); err != nil {
				return err
			}
			at += int64(n)
		}
		if failed != nil && at < end {
			return cut(failed)
		}
	}
	r.wrote(0, offset+h.Size)
	return nil
}

// write writes bytes of the open file.
func (r *Receiver) write(p []byte, at int64) error {
	if r.unchecked += int64(len(p)); r.unchecked >= checkRoomBytes {
		r.unchecked = 0
		if err := r.checkRoom(); err != nil {
			return err
		}
	}
	if _, err := r.file.file.WriteAt(p, at); err != nil {
		return err
	}
	r.wrote(len(p), at+int64(len(p)))
	return nil
}

// wrote stores the progress in the open file.
func (r *Receiver) wrote(n int, end int64) {
	r.file.written = end
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.Bytes += int64(n)
	r.progress.At = Position{Path: r.file.path, Offset: end}
}

// closeFile completes the open file.
func (r *Receiver) closeFile() error {
	f := r.file
	if f == nil {
		return nil
	}
	r.file = nil
	if err := f.file.Close(); err != nil {
		return err
	}
	return r.set(r.dirs[len(r.dirs)-1].root, f.entry)
}

// finish reads the end of the stream, completes the last file and its folders, and makes everything durable.
func (r *Receiver) finish(frames *frameReader) error {
	switch n, err := frames.Read(make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: bytes follow the archive", ErrInvalid)
	case !errors.Is(err, io.EOF):
		return err
	}
	if err := r.closeFile(); err != nil {
		return err
	}
	for len(r.dirs) > 0 {
		if err := r.leave(); err != nil {
			return err
		}
	}
	return unix.Syncfs(int(r.disk.Fd()))
}

// room adds [ErrNoRoom] to the error of a full disk, and [ErrTooLarge] to that of a file that is too large for it.
func room(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	case errors.Is(err, unix.EFBIG):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return err
}
