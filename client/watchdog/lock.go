package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// holder is the content of the lock's file: the watchdog that has the lock.
type holder struct {
	Process process.Identity
	// Number is the time of the start on the boot clock, or more: a later start has a greater one, also if
	// the clock went back.
	Number int64
}

// nextNumber returns the Number of the next start in a folder.
func nextNumber(dir string) int64 {
	number := int64(bootclock.Now())
	if file, err := openLock(dir); err == nil {
		if last, err := readHolder(file); err == nil && last.Number >= number {
			number = last.Number + 1
		}
		_ = file.Close() // it was only read
	}
	return number
}

const (
	lockFile = "lock"
	// lockWait is how long a watchdog waits for the lock of another one that it has killed.
	lockWait = 5 * time.Second
	// lockLook is the time between two attempts to take the lock.
	lockLook = 2 * time.Millisecond
)

func openLock(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// take ends an earlier watchdog and takes the lock. It is an error if a later watchdog has it.
func take(dir string, number int64) (*os.File, error) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(holder{Process: self, Number: number})
	if err != nil {
		return nil, err
	}
	file, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	err = evict(file, number)
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(content, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the lock of the watchdog: %w", err), file.Close())
	}
	return file, nil
}

// errLater states that the watchdog of a later start has the lock.
var errLater = errors.New("a later watchdog runs")

// evict kills the watchdog that has the lock, unless it has a later number, and takes the lock.
func evict(file *os.File, number int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	tick := time.NewTicker(lockLook)
	defer tick.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		h, err := readHolder(file)
		switch {
		case err != nil: // the other watchdog has just taken the lock, and writes its name
		case h.Number > number:
			return errLater
		default:
			err = process.Kill(ctx, h.Process)
			if err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(errors.New("the other watchdog did not end"), err)
		}
	}
}

func readHolder(file *os.File) (holder, error) {
	var h holder
	err := json.NewDecoder(io.NewSectionReader(file, 0, 4096)).Decode(&h)
	return h, err
}

// End ends the watchdog of a folder. The folder need not exist. While the caller lives, no other
// process may start a watchdog there.
func End(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	file, err := openLock(dir)
	if err == nil {
		// The name of an earlier holder stays in the file. Its process has ended.
		err = evict(file, math.MaxInt64)
		err = errors.Join(err, unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
	}
	if err != nil {
		return fmt.Errorf("end the watchdog of an earlier client: %w", err)
	}
	return nil
}
