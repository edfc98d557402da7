package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// maxCommand bounds the bytes of a described command.
const maxCommand = 120

// A Description names a process for people, and why it may not end.
type Description struct {
	PID int
	// State is the letter of proc(5), of the thread that explains most: D before all others.
	State byte
	// Command is the command line, or the name in brackets for a process without one. It holds
	// printable characters only, at most 120 bytes.
	Command string
}

func (d Description) String() string {
	return fmt.Sprintf("pid %d (%s): %s", d.PID, stateName(d.State), d.Command)
}

// Describe describes the process that has the pid now. The error is ErrGone if there is none. A
// thread in state D is shown even if the leader is in another state.
func Describe(pid int) (Description, error) {
	name := strconv.Itoa(pid)
	st, err := readStat(name)
	if err != nil {
		return Description{}, err
	}
	d := Description{PID: pid, State: st.state, Command: "[" + printable(st.command) + "]"}
	if line, err := os.ReadFile(filepath.Join("/proc", name, "cmdline")); err == nil && len(line) > 0 {
		d.Command = printable(string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '})))
	}
	tasks, err := os.ReadDir(filepath.Join("/proc", name, "task"))
	if err != nil {
		return d, nil // it ended while it was described
	}
	for _, task := range tasks {
		st, err := readStat(filepath.Join(name, "task", task.Name()))
		switch {
		case err != nil: // the thread ended
		case st.state == 'D', !stat{state: d.State}.living() && st.living():
			d.State = st.state
		}
	}
	return d, nil
}

// Describe describes the process of the identity, or returns ErrGone.
func (id Identity) Describe() (Description, error) {
	if _, err := id.stat(); err != nil {
		return Description{}, err
	}
	d, err := Describe(id.PID)
	if err != nil {
		return Description{}, err
	}
	if _, err := id.stat(); errors.Is(err, ErrGone) { // the pid may have changed hands in between
		return Description{}, ErrGone
	}
	return d, nil
}

// stateName names a state letter of proc(5).
func stateName(state byte) string {
	switch state {
	case 'R':
		return "state R, running"
	case 'S':
		return "state S, sleeping"
	case 'D':
		return "state D, waits for a device or a file system and ignores signals"
	case 'T':
		return "state T, stopped by a signal"
	case 't':
		return "state t, stopped by a debugger"
	case 'Z':
		return "state Z, ended and not reaped by its parent"
	default:
		return "state " + string(rune(state))
	}
}

// printable replaces what a terminal would interpret and cuts s to maxCommand bytes.
func printable(s string) string {
	b := make([]byte, 0, min(len(s), maxCommand))
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = '?'
		}
		if len(b)+len(string(r)) > maxCommand {
			break
		}
		b = append(b, string(r)...)
	}
	return string(b)
}

// Leader returns the pid of the process that a thread belongs to, or ErrGone. The leader's own
// number leads to itself.
func Leader(thread int) (int, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(thread), "status"))
	if isGone(err) {
		return 0, ErrGone
	}
	if err != nil {
		return 0, fmt.Errorf("read the process of thread %d: %w", thread, err)
	}
	for line := range bytes.Lines(b) {
		if number, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			return strconv.Atoi(string(bytes.TrimSpace(number)))
		}
	}
	return 0, fmt.Errorf("read the process of thread %d: no Tgid", thread)
}

// LeaderEnded reports whether the first thread of a process has ended. Its other threads may run on:
// see [Identity.Alive]. The error is ErrGone if there is no process with the pid.
func LeaderEnded(pid int) (bool, error) {
	st, err := readStat(strconv.Itoa(pid))
	return err == nil && !st.living(), err
}

// Killed reports whether a process has got SIGKILL and has not ended: it is in a call of the kernel that nothing
// interrupts, or ends just now.
func Killed(pid int) bool {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		if set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64); err == nil && set&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}
