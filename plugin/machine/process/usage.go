package process

import (
	"os"
	"strconv"
	"time"
)

// Usage is what a process has used.
type Usage struct {
	// CPU is the time of the processor since the start of the process.
	CPU time.Duration
	// RSS is the memory that the process has now, in bytes. Shared pages count fully.
	RSS uint64
}

// UsageOf returns the usage of the process that has the pid now, or ErrGone.
func UsageOf(pid int) (Usage, error) {
	st, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return Usage{}, err
	}
	const tick = time.Second / 100 // USER_HZ is 100 on all machines that Go supports
	return Usage{CPU: time.Duration(st.ticks) * tick, RSS: st.pages * uint64(os.Getpagesize())}, nil
}
