package freshmachine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of each descendant whose parent ends.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// endChildren kills and reaps all children, and those that they leave.
func endChildren() {
	for {
		killChildren()
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && err != unix.EINTR {
			return // no child is left
		}
	}
}

// killChildren kills the children. One that is reaped meanwhile leaves a pid that the kernel does not
// use again so soon.
func killChildren() {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	parent := []byte(strconv.Itoa(os.Getpid()))
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// After the name in brackets: the state, the parent.
		fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
		if len(fields) < 2 || !bytes.Equal(fields[1], parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
