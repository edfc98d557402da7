//go:build unix

package datadir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock locks the file. The end of the process releases the lock, also after a crash.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("is in use by another process: stop it, or use another directory")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking: %w", err), f.Close())
	}
	return f, nil
}

// unlock releases the lock and closes the file. Closing alone is not enough: a forked process has the
// file open too until it executes its program.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// syncDir syncs a directory, so that its new entries survive a power failure.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
