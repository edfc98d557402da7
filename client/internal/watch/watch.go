// Package watch reports changes of files. It uses events of the kernel (inotify) and does not poll.
package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// changes are the events that concern a reader of a file in a folder.
const changes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO

// Watcher watches folders for any number of users. It needs one instance of inotify, of which a user
// may have few, and one goroutine, both while it has users. The zero value is ready.
type Watcher struct {
	mu sync.Mutex
	// file is the instance, or nil without users; guarded by mu. raw is its number for calls that do
	// not wait.
	file *os.File
	raw  int
	// users are the users of each watch of the instance, by the kernel's number of the watch; guarded by mu.
	users map[int32][]*User
}

// User receives the changes of some files in one folder.
type User struct {
	// Changed receives a value after a change. Several changes may be one value.
	Changed <-chan struct{}

	changed  chan struct{} // capacity 1
	watcher  *Watcher
	instance *os.File
	watch    int32
	concerns func(name string) bool
}

// Watch begins to watch the files of a folder whose names concern the user. An error means that the
// kernel has no room for another watch.
func (w *Watcher) Watch(dir *os.Root, concerns func(name string) bool) (*User, error) {
	open, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("watch a folder: %w", err)
	}
	defer open.Close()
	raw, err := open.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("watch a folder: %w", err)
	}
	u := &User{changed: make(chan struct{}, 1), watcher: w, concerns: concerns}
	u.Changed = u.changed
	var failed error
	// The path leads to the folder that is open, also after a rename.
	if err := raw.Control(func(fd uintptr) { failed = w.add(u, "/proc/self/fd/"+strconv.Itoa(int(fd))) }); err != nil {
		return nil, fmt.Errorf("watch a folder: %w", err)
	}
	if failed != nil {
		return nil, fmt.Errorf("watch a folder: %w", failed)
	}
	return u, nil
}

func (w *Watcher) add(u *User, path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		raw, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		w.file, w.raw, w.users = os.NewFile(uintptr(raw), "inotify"), raw, make(map[int32][]*User)
		go w.listen(w.file)
	}
	watch, err := unix.InotifyAddWatch(w.raw, path, changes)
	if err != nil {
		w.endWithoutUsers()
		return err
	}
	u.instance, u.watch = w.file, int32(watch)
	w.users[u.watch] = append(w.users[u.watch], u)
	return nil
}

// Close ends the watch.
func (u *User) Close() {
	w := u.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != u.instance {
		return // The instance has failed.
	}
	left := slices.DeleteFunc(w.users[u.watch], func(other *User) bool { return other == u })
	if len(left) > 0 {
		w.users[u.watch] = left
		return
	}
	delete(w.users, u.watch)
	_, _ = unix.InotifyRmWatch(w.raw, uint32(u.watch)) // An error: the folder is gone.
	w.endWithoutUsers()
}

// endWithoutUsers ends the goroutine if no user needs it. The caller has the lock.
func (w *Watcher) endWithoutUsers() {
	if len(w.users) == 0 {
		_ = w.file.Close()
		w.file = nil
	}
}

// listen hands on the events of an instance until it is closed.
func (w *Watcher) listen(file *os.File) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			w.fail(file, err)
			return
		}
		for _, e := range parse(buffer[:n]) {
			for _, u := range w.concerned(file, e) {
				u.wake()
			}
		}
	}
}

// fail wakes all users of an instance that cannot be read. Later users get a new one.
func (w *Watcher) fail(file *os.File, err error) {
	if errors.Is(err, os.ErrClosed) {
		return
	}
	w.mu.Lock()
	var all []*User
	if w.file == file {
		for _, users := range w.users {
			all = append(all, users...)
		}
		w.file, w.users = nil, nil
	}
	w.mu.Unlock()
	_ = file.Close()
	for _, u := range all {
		u.wake()
	}
}

// concerned returns the users that an event concerns. After an overflow these are all.
func (w *Watcher) concerned(file *os.File, e event) []*User {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*User
	if w.file != file {
		return nil
	}
	if e.mask&unix.IN_Q_OVERFLOW != 0 {
		for _, users := range w.users {
			all = append(all, users...)
		}
		return all
	}
	for _, u := range w.users[e.watch] {
		if e.mask&unix.IN_IGNORED != 0 || u.concerns(e.name) {
			all = append(all, u)
		}
	}
	return all
}

func (u *User) wake() {
	select {
	case u.changed <- struct{}{}:
	default: // A wake-up is pending.
	}
}

type event struct {
	watch int32
	mask  uint32
	name  string
}

// parse reads events. It ignores an incomplete event, and all bytes after it.
func parse(p []byte) []event {
	var all []event
	for len(p) >= unix.SizeofInotifyEvent {
		length := uint64(binary.NativeEndian.Uint32(p[12:]))
		if uint64(len(p)) < unix.SizeofInotifyEvent+length {
			break
		}
		end := unix.SizeofInotifyEvent + int(length)
		name, _, _ := bytes.Cut(p[unix.SizeofInotifyEvent:end], []byte{0})
		all = append(all, event{int32(binary.NativeEndian.Uint32(p)), binary.NativeEndian.Uint32(p[4:]), string(name)})
		p = p[end:]
	}
	return all
}
