package watchdog

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	// diskWait is how long a watchdog waits for its disk. Tasks get their signals nevertheless.
	diskWait = time.Second
	// maxWrites is the number of writes that may wait for the disk. Others are lost.
	maxWrites = 100
)

// errDisk states that a write has not returned in time.
var errDisk = errors.New("the disk does not answer")

// disk makes writes in a goroutine of its own, because a write to a disk that hangs does not return. The
// client may hang because of the same disk. Only await needs one caller at a time.
type disk struct {
	log    io.Writer
	writes chan func()
	// last receives the result of the last awaited write. It is nil if that has returned.
	last chan error
}

// newDisk returns a disk with a goroutine that ends with the process. Its log is written to log.
func newDisk(log io.Writer) *disk {
	d := &disk{log: log, writes: make(chan func(), maxWrites)}
	go func() {
		for write := range d.writes {
			write()
		}
	}()
	return d
}

// Write writes to the log, and does not wait for that. It reports no error.
func (d *disk) Write(line []byte) (int, error) {
	text := bytes.Clone(line)
	d.queue(func() { _, _ = d.log.Write(text) })
	return len(line), nil
}

func (d *disk) queue(write func()) bool {
	select {
	case d.writes <- write:
		return true
	default:
		return false
	}
}

// await makes a write after all earlier ones. It does not wait longer than [diskWait], and not at all while
// an earlier awaited write has not returned.
func (d *disk) await(write func() error) error {
	if d.last != nil && len(d.last) == 0 {
		d.queue(func() { _ = write() })
		return errDisk
	}
	done := make(chan error, 1)
	if !d.queue(func() { done <- write() }) {
		return errDisk
	}
	d.last = done
	select {
	case err := <-done:
		d.last = nil
		return err
	case <-time.After(diskWait):
		return errDisk
	}
}
