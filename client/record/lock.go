package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/private"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// Lock is the lock of a client's data directory, or of a node on one machine. It ends with the process.
type Lock struct {
	file *os.File
	// remove is the path of a file that Close removes, or empty.
	remove string
}

// LockFile is the name of the file in a data directory that is locked.
const LockFile = "lock"

// ErrInUse states that a process has the lock.
var ErrInUse = errors.New("is in use")

// TakeLock takes the lock of a data directory, and makes the directory with mode 0700 if it does not
// exist. It returns an error if another user owns the directory, may write to it, or may replace
// it. If another client has the lock, the error names its pid.
func TakeLock(dir string) (*Lock, error) {
	if _, err := private.Make(dir); err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := take(file, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data directory: %w", err), file.Close())
	}
	return &Lock{file: file}, nil
}

func take(file *os.File, dir string) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := holder(file)
		return fmt.Errorf("%s %w by the client with pid %s", dir, ErrInUse, pid)
	}
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// TakeNodeLock takes the lock of a node on this machine. All clients of one user have the same folder for
// these locks. dataDir is the data directory of the caller, which has its lock. Another client with the
// lock has a copy of it: the error names the pid, the directory and the remedy.
func TakeNodeLock(folder string, id cluster.NodeID, dataDir string) (*Lock, error) {
	if _, err := private.Make(folder); err != nil {
		return nil, fmt.Errorf("lock the node: %w", err)
	}
	path := filepath.Join(folder, pathname.Encode(string(id)))
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the node: %w", err)
		}
		taken, err := takeNode(file, id, dataDir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock the node: %w", err), file.Close())
		}
		if taken {
			return &Lock{file: file, remove: path}, nil
		}
		_ = file.Close() // the last holder has removed it
	}
}

// takeNode reports false if the file is not at its path any more.
func takeNode(file *os.File, id cluster.NodeID, dataDir string) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, other := holder(file)
		return false, fmt.Errorf("the node %s %w by the client with pid %s and the data directory %s: one of %s and %s is a copy of the other; "+
			"stop one of the clients, and start it with an empty data directory", id, ErrInUse, pid, other, other, dataDir)
	}
	if err != nil {
		return false, err
	}
	locked, err := file.Stat()
	if err != nil {
		return false, err
	}
	if there, err := os.Lstat(file.Name()); err != nil || !os.SameFile(locked, there) {
		return false, nil
	}
	if err := file.Truncate(0); err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(file, "%d\n%s\n", os.Getpid(), dataDir)
	return err == nil, err
}

// holder returns the pid and the data directory in a locked file. A client that just starts has not written
// them yet, and the lock of a data directory contains only the pid.
func holder(file *os.File) (pid, dataDir string) {
	text, err := io.ReadAll(io.LimitReader(file, 8192))
	pid, dataDir, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	if _, bad := strconv.Atoi(pid); err != nil || bad != nil {
		return "unknown", "unknown"
	}
	return pid, dataDir
}

// Close releases the lock, also for a process that is being started and holds a copy of the file until
// its exec.
func (l *Lock) Close() error {
	var err error
	if l.remove != "" {
		err = os.Remove(l.remove)
	}
	return errors.Join(err, syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
