package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const (
	// ticksPerSecond is USER_HZ, the unit of times in /proc/PID/stat on all architectures of Go.
	ticksPerSecond = 100
	nanosPerTick   = 1_000_000_000 / ticksPerSecond
)

// machineTicks returns a time after boot, as this process reads it in /proc/PID/stat, on the clock of
// the machine. The kernel adds the offset of the reader's time namespace. Two processes with different
// offsets must agree about the identity of a third one.
func machineTicks(read uint64) (uint64, error) {
	content, err := os.ReadFile("/proc/self/timens_offsets")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without time namespaces
		return read, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the clocks of the time namespace: %w", err)
	}
	offset, err := bootOffset(content)
	return uint64(int64(read) - offset), err
}

// bootOffset returns what a time namespace adds to the boot clock, in ticks.
func bootOffset(timensOffsets []byte) (int64, error) {
	for line := range bytes.Lines(timensOffsets) {
		var name string
		var seconds, nanos int64
		if _, err := fmt.Sscan(string(line), &name, &seconds, &nanos); err != nil {
			return 0, fmt.Errorf("read the clocks of the time namespace: line %q: %w", strings.TrimSpace(string(line)), err)
		}
		if name == "boottime" {
			return seconds*ticksPerSecond + nanos/nanosPerTick, nil
		}
	}
	return 0, nil
}
