package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrGone means that the process of an identity has ended: its pid is free, belongs to another
// process, or names a zombie without living threads.
var ErrGone = errors.New("process has ended")

// An Identity names one process for ever. Its zero value names none.
type Identity struct {
	// Boot is the boot id of the machine, as the kernel prints it.
	Boot string `json:"boot"`
	// PID is the process id in the pid namespace of the caller.
	PID int `json:"pid"`
	// Start is the start time in clock ticks after boot: field 22 of /proc/PID/stat, on the clock of the
	// machine. A time namespace does not change it.
	Start uint64 `json:"start"`
}

// IsZero reports whether id names no process.
func (id Identity) IsZero() bool { return id == Identity{} }

func (id Identity) String() string {
	return fmt.Sprintf("pid %d started at tick %d of boot %s", id.PID, id.Start, id.Boot)
}

// BootID returns the id of the machine's present boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return string(bytes.TrimSpace(b)), nil
}

// Identify returns the identity of the process that has the pid now. The caller must be sure that the
// pid belongs to the process that it means, because it is its parent or because the process sent
// it. The error is ErrGone if there is none. A zombie has an identity.
func Identify(pid int) (Identity, error) {
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	st, err := readStat(strconv.Itoa(pid))
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: boot, PID: pid, Start: st.start}, nil
}

// Alive reports whether the process lives. A zombie whose threads still run lives: it holds its
// files and its control group. An error means that the answer is not known.
func (id Identity) Alive() (bool, error) {
	switch st, err := id.stat(); {
	case errors.Is(err, ErrGone):
		return false, nil
	case err != nil:
		return false, err
	case st.living():
		return true, nil
	}
	// The leader has ended. Its threads may run on.
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(id.PID), "task"))
	if err != nil && !isGone(err) {
		return false, fmt.Errorf("list the threads of %s: %w", id, err)
	}
	for _, task := range tasks {
		st, err := readStat(filepath.Join(strconv.Itoa(id.PID), "task", task.Name()))
		switch {
		case errors.Is(err, ErrGone):
		case err != nil:
			return false, err
		case st.living():
			return true, nil
		}
	}
	return false, nil
}

// stat reads the state of the process, or returns ErrGone.
func (id Identity) stat() (stat, error) {
	boot, err := BootID()
	if err != nil {
		return stat{}, err
	}
	if id.Boot != boot || id.PID <= 0 {
		return stat{}, ErrGone
	}
	st, err := readStat(strconv.Itoa(id.PID))
	if err != nil {
		return stat{}, err
	}
	if st.start != id.Start {
		return stat{}, ErrGone
	}
	return st, nil
}

// kernelThread is the flag PF_KTHREAD of field 9 of /proc/PID/stat.
const kernelThread = 0x00200000

// stat is what this package reads of /proc/PID/stat.
type stat struct {
	state   byte
	command string
	parent  int
	session int
	ticks   uint64 // of the processor, in user and system mode
	start   uint64
	pages   uint64 // in memory
	kernel  bool   // it is a thread of the kernel
	code    uint64 // address after the code. The kernel sets it at the end of an execve, and it is 0 before.
	from    uint64 // address of the environment
	to      uint64 // address after the environment
}

// living reports whether the thread has not ended.
func (s stat) living() bool { return s.state != 'Z' && s.state != 'X' && s.state != 'x' }

// hasEnvironment reports whether the environment is not empty, or will not be after an execve.
func (s stat) hasEnvironment() bool {
	return s.living() && !s.kernel && (s.code == 0 || s.from != s.to)
}

// readStat reads the stat file of a folder below /proc. The error is ErrGone if it does not exist.
func readStat(name string) (stat, error) {
	b, err := os.ReadFile(filepath.Join("/proc", name, "stat"))
	if isGone(err) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %s: %w", name, err)
	}
	st, err := parseStat(b)
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %s: %w", name, err)
	}
	st.start, err = machineTicks(st.start)
	return st, err
}

// isGone reports whether a read below /proc failed because the process has ended.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// parseStat reads a line of /proc/PID/stat. The command in brackets may hold brackets and spaces.
func parseStat(line []byte) (stat, error) {
	left, right := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if left < 0 || right < left {
		return stat{}, errors.New("no command in brackets")
	}
	fields := strings.Fields(string(line[right+1:]))
	// Fields 3, 4, 6, 9, 14, 15, 22, 24, 27, 50 and 51 of proc(5), counted from field 3.
	const state, parent, session, flags, user, system, start, pages, code, from, to = 0, 1, 3, 6, 11, 12, 19, 21, 24, 47, 48
	if len(fields) <= to || len(fields[state]) != 1 {
		return stat{}, fmt.Errorf("%d fields after the command", len(fields))
	}
	st := stat{state: fields[state][0], command: string(line[left+1 : right])}
	var err error
	if st.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, fmt.Errorf("parent: %w", err)
	}
	if st.session, err = strconv.Atoi(fields[session]); err != nil {
		return stat{}, fmt.Errorf("session: %w", err)
	}
	var ticks [2]uint64
	var flagBits uint64
	for i, into := range map[int]*uint64{
		flags: &flagBits, user: &ticks[0], system: &ticks[1], start: &st.start, pages: &st.pages, code: &st.code, from: &st.from, to: &st.to,
	} {
		if *into, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return stat{}, fmt.Errorf("field %d: %w", i+3, err)
		}
	}
	st.ticks = ticks[0] + ticks[1]
	st.kernel = flagBits&kernelThread != 0
	return st, nil
}
