package node

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client"
)

// alarm rings at times of the boot clock, which continues while the machine is suspended. The timers of
// package time do not.
type alarm struct {
	file *os.File
	// rings has capacity 1.
	rings chan struct{}
	ended chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a timer: %w", err)
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer"), rings: make(chan struct{}, 1), ended: make(chan struct{})}
	go a.wait()
	return a, nil
}

// wait forwards the events of the timer until the alarm is closed.
func (a *alarm) wait() {
	defer close(a.ended)
	count := make([]byte, 8)
	for {
		if _, err := a.file.Read(count); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default: // the last ring was not heard yet
		}
	}
}

// set replaces the time at which the alarm rings. For a time in the past it rings at once, for
// [client.Never] it does not ring.
func (a *alarm) set(at time.Duration) error {
	var spec unix.ItimerSpec // zero never rings
	if at != client.Never {
		spec.Value = unix.NsecToTimespec(int64(max(at, 1)))
	}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	return errors.Join(err, failed)
}

// close ends the alarm and its goroutine.
func (a *alarm) close() {
	_ = a.file.Close()
	<-a.ended
}
