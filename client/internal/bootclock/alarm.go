package bootclock

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Never is the time of an alarm that does not ring.
const Never time.Duration = math.MaxInt64

// Alarm rings at times of the boot clock. The timers of package time do not continue while the machine
// is suspended.
type Alarm struct {
	file  *os.File
	rings chan struct{}
	ended chan struct{}
}

// NewAlarm returns an alarm that does not ring yet, with a goroutine that [Alarm.Close] joins.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a timer: %w", err)
	}
	a := &Alarm{file: os.NewFile(uintptr(fd), "timer"), rings: make(chan struct{}, 1), ended: make(chan struct{})}
	go a.wait()
	return a, nil
}

// Rings receives a value when the alarm rings. It holds at most one.
func (a *Alarm) Rings() <-chan struct{} { return a.rings }

// wait forwards the events of the timer until the alarm is closed.
func (a *Alarm) wait() {
	defer close(a.ended)
	count := make([]byte, 8)
	for {
		if _, err := a.file.Read(count); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default: // the last ring was not received yet
		}
	}
}

// Set replaces the time at which the alarm rings. For a time in the past it rings at once, for
// [Never] it does not ring.
func (a *Alarm) Set(at time.Duration) error {
	var spec unix.ItimerSpec // zero never rings
	if at != Never {
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

// Close ends the alarm and its goroutine.
func (a *Alarm) Close() {
	_ = a.file.Close()
	<-a.ended
}
