package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// executing is how long [Environment] waits for the end of an execve.
const executing = time.Second

// Environment returns the environment that the process got when its program began: strings that each
// end with a zero byte. It is empty for a zombie and for a thread of the kernel. The error is ErrGone
// if there is no process with the pid.
//
// The kernel shows an empty environment while a process executes another program. Environment waits
// until that has ended, at most a second.
func Environment(pid int) ([]byte, error) {
	name := strconv.Itoa(pid)
	for end := time.Now().Add(executing); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(filepath.Join("/proc", name, "environ"))
		if isGone(err) {
			return nil, ErrGone
		}
		if err != nil {
			return nil, fmt.Errorf("read the environment of process %s: %w", name, err)
		}
		if len(b) > 0 || time.Now().After(end) {
			return b, nil
		}
		st, err := readStat(name)
		if err != nil {
			return nil, err
		}
		if !st.hasEnvironment() {
			return b, nil
		}
	}
}
