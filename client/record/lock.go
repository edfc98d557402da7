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

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// Lock is the lock of a client's data directory. It ends with the process.
type Lock struct{ file *os.File }

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
	return &Lock{file}, nil
}

func take(file *os.File, dir string) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s %w by the client with pid %s", dir, ErrInUse, holder(file))
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

// holder returns the pid in a locked file. A client that just starts has not written it yet.
func holder(file *os.File) string {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	pid := strings.TrimSpace(string(text))
	if _, bad := strconv.Atoi(pid); err != nil || bad != nil {
		return "unknown"
	}
	return pid
}

// Close releases the lock, also for a process that is being started and holds a copy of the file until
// its exec.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
