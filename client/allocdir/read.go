package allocdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// Bounds on one read of the files of an allocation.
const (
	// MaxPath is the length of the longest path that a caller may request, in bytes.
	MaxPath = 4096
	// maxSteps bounds the elements of a path, those of its symbolic links included.
	maxSteps = 200
	// maxLinks bounds the symbolic links in a path.
	maxLinks = 40
)

// Errors of [Folders.Stat], [Folders.ReadDir] and [Folders.OpenFile]. A file that does not exist is
// [fs.ErrNotExist].
var (
	// ErrRefused means that the path leads to secrets, or to files of the client.
	ErrRefused = errors.New("secrets of tasks and files of the client cannot be read")
	// ErrOutside means that the path, or a symbolic link in it, leads out of the allocation.
	ErrOutside = errors.New("the path leads out of the allocation")
	// ErrFolder means that the path is a folder, and a file is needed.
	ErrFolder = errors.New("it is a folder")
	// ErrNoFolder means that a part of the path is no folder.
	ErrNoFolder = errors.New("it is not a folder")
	// ErrSpecial means that the path is a FIFO, a socket or a device, which the client does not open.
	ErrSpecial = errors.New("it is neither a file nor a folder")
	// ErrTooLong means that the path has too many bytes, elements or symbolic links.
	ErrTooLong = errors.New("the path is too long")
	// ErrTooMany means that a folder has too many entries.
	ErrTooMany = errors.New("the folder has too many entries")
	// ErrNoAlloc means that the node has no folders of the allocation.
	ErrNoAlloc = errors.New("the node has no files of this allocation")
)

// Entry is a file or a folder of an allocation as callers see it.
type Entry struct {
	// Name is the last element of the path. The folder of a task has the name of the task, unless the
	// name has a "%", a "=" or a slash, is "alloc", "." or "..", or is longer than a path element may
	// be: then it is the name on disk.
	Name string
	// Info describes the file itself. A symbolic link that was followed is not observed.
	Info fs.FileInfo
}

// File is an open regular file.
type File struct {
	opened
	// Folder has the file under the name Name.
	Folder *os.Root
	Name   string
}

// opened is what callers do with an open file.
type opened interface {
	io.ReadSeekCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// Close closes the file and its folder.
func (f *File) Close() error { return errors.Join(f.opened.Close(), f.Folder.Close()) }

// Stat describes what a path leads to. The path is relative to the folder of the allocation, and
// callers name tasks in it, for example "web/local/x". Stat follows symbolic links that stay in the
// allocation. It refuses secrets and private folders, also through a symbolic link.
func (f *Folders) Stat(alloc, name string) (Entry, error) {
	found, err := f.find(alloc, name)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: found.shown(), Info: found.info}, found.dir.Close()
}

// ReadDir lists a folder, in the order of names. It lists special files and symbolic links and does not
// open them. A folder of more than limit entries is [ErrTooMany].
func (f *Folders) ReadDir(alloc, name string, limit int) ([]Entry, error) {
	found, err := f.find(alloc, name)
	if err != nil {
		return nil, err
	}
	defer found.dir.Close()
	if !found.info.IsDir() {
		return nil, ErrNoFolder
	}
	dir, err := enter(found.dir, found.name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := readNames(dir, limit)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		if len(found.at) == 0 && name == incoming {
			continue
		}
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was removed meanwhile.
		}
		if err != nil {
			return nil, err
		}
		if len(found.at) == 0 {
			name = shownTask(name)
		}
		entries = append(entries, Entry{Name: name, Info: info})
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

// OpenFile opens a regular file for reading. It never opens another kind of file, and never waits for
// one.
func (f *Folders) OpenFile(alloc, name string) (*File, error) {
	found, err := f.find(alloc, name)
	if err != nil {
		return nil, err
	}
	file, err := openRegular(found.dir, found.name)
	if err != nil {
		return nil, errors.Join(err, found.dir.Close())
	}
	return &File{opened: file, Folder: found.dir, Name: found.name}, nil
}

// OpenLogs opens the folder of the logs of an allocation.
func (f *Folders) OpenLogs(alloc string) (*os.Root, error) {
	found, err := f.find(alloc, shared+"/logs")
	if err != nil {
		return nil, err
	}
	dir, err := enter(found.dir, found.name)
	return dir, errors.Join(err, found.dir.Close())
}

// found is what a path leads to: no symbolic link.
type found struct {
	// dir has it under the name. Its user closes dir.
	dir  *os.Root
	name string
	info fs.FileInfo
	// at is the path from the folder of the allocation, without symbolic links.
	at []string
}

func (f *found) shown() string {
	switch last := len(f.at) - 1; last {
	case -1:
		return "/"
	case 0:
		return shownTask(f.at[0])
	default:
		return f.at[last]
	}
}

// find follows a path. Each step opens one folder and proves that it is no link, so that a task cannot
// exchange a folder for a link between the check and the use.
func (f *Folders) find(alloc, name string) (*found, error) {
	todo, err := elements(name)
	if err != nil {
		return nil, err
	}
	top, err := enter(f.root, pathname.Encode(alloc))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoAlloc
	}
	if err != nil {
		return nil, err
	}
	w := walk{dirs: []*os.Root{top}, todo: todo}
	defer func() {
		for _, dir := range w.dirs {
			_ = dir.Close()
		}
	}()
	for steps := 0; len(w.todo) > 0; steps++ {
		if steps == maxSteps {
			return nil, ErrTooLong
		}
		if last, err := w.step(); err != nil || last != nil {
			return last, err
		}
	}
	// The path ended with the folder that is open.
	last := len(w.dirs) - 1
	dir := w.dirs[last]
	w.dirs = w.dirs[:last]
	info, err := dir.Lstat(".")
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &found{dir: dir, name: ".", info: info, at: w.at}, nil
}

// walk is a path that is being followed.
type walk struct {
	// dirs are the open folders from the top, and at the names of all but the first.
	dirs  []*os.Root
	at    []string
	todo  []string
	links int
}

// step takes one element. It returns what the path leads to if the element is the last one.
func (w *walk) step() (*found, error) {
	name := w.todo[0]
	w.todo = w.todo[1:]
	last := len(w.dirs) - 1
	if name == ".." {
		if last == 0 {
			return nil, ErrOutside
		}
		_ = w.dirs[last].Close()
		w.dirs, w.at = w.dirs[:last], w.at[:last-1]
		return nil, nil
	}
	here := append(slices.Clone(w.at), name)
	if refused(here) {
		return nil, ErrRefused
	}
	dir := w.dirs[last]
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, plainError(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, w.follow(dir, name)
	case len(w.todo) == 0 && !info.IsDir():
		w.dirs = w.dirs[:last]
		return &found{dir: dir, name: name, info: info, at: here}, nil
	case !info.IsDir():
		return nil, ErrNoFolder
	}
	next, err := enter(dir, name)
	if err != nil {
		return nil, err
	}
	w.dirs, w.at = append(w.dirs, next), here
	return nil, nil
}

// follow puts the target of a symbolic link before the rest of the path.
func (w *walk) follow(dir *os.Root, name string) error {
	target, err := dir.Readlink(name)
	if err != nil {
		return plainError(err)
	}
	if path.IsAbs(target) {
		return ErrOutside
	}
	if w.links++; w.links > maxLinks {
		return ErrTooLong
	}
	w.todo = append(split(target), w.todo...)
	return nil
}

// refused reports whether a path leads into a folder that callers may not see.
func refused(at []string) bool {
	switch {
	case at[0] == incoming:
		return true
	case len(at) == 2 && at[0] != shared:
		return at[1] == "secrets" || at[1] == "private"
	case len(at) == 3 && at[0] == shared && at[1] == "logs":
		return strings.HasPrefix(at[2], ".") // what the client keeps beside logs
	}
	return false
}

// elements returns the names on disk of a caller's path.
func elements(name string) ([]string, error) {
	if len(name) > MaxPath || strings.ContainsRune(name, 0) {
		return nil, ErrTooLong
	}
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return nil, ErrOutside
	}
	names := split(clean)
	if len(names) > 0 {
		names[0] = folderOf(names[0])
	}
	return names, nil
}

// split returns the elements of a path that mean something.
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

// encodes are the characters that only encoded names need.
const encodes = "%="

// folderOf returns the name on disk of what callers see at the top of an allocation.
func folderOf(shown string) string {
	if shown == shared || strings.ContainsAny(shown, encodes) {
		return shown
	}
	return TaskFolder(shown)
}

// shownTask is the reverse of folderOf.
func shownTask(folder string) string {
	task, err := pathname.Decode(folder)
	if err != nil || task == "" || task == "." || task == ".." || strings.ContainsAny(task, encodes+"/\x00") || folderOf(task) != folder {
		return folder
	}
	return task
}

// enter opens a folder that is no symbolic link.
func enter(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, plainError(err)
	}
	if !before.IsDir() {
		return nil, ErrNoFolder
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, plainError(err)
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s changed while it was opened", name)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// openRegular opens a regular file that is no symbolic link. A FIFO that takes its place meanwhile is
// opened without waiting, and closed.
func openRegular(dir *os.Root, name string) (*os.File, error) {
	before, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, plainError(err)
	case before.IsDir():
		return nil, ErrFolder
	case !before.Mode().IsRegular():
		return nil, ErrSpecial
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plainError(err)
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

// plainError removes the names on disk from an error.
func plainError(err error) error {
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return ErrTooLong
	}
	if inner, is := errors.AsType[*fs.PathError](err); is {
		return inner.Err
	}
	return err
}

// readNames returns the names in a folder, at most limit.
func readNames(dir *os.Root, limit int) ([]string, error) {
	open, err := dir.Open(".")
	if err != nil {
		return nil, plainError(err)
	}
	defer open.Close()
	var names []string
	for {
		more, err := open.Readdirnames(256)
		names = append(names, more...)
		switch {
		case len(names) > limit:
			return nil, ErrTooMany
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, plainError(err)
		}
	}
}
