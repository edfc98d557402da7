package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Protocol is the version of requests, specs and records. The version of a running shim does not
// change.
const Protocol = 1

// Spec contains everything that a shim needs to start its task.
type Spec struct {
	Protocol int    `json:"protocol"`
	TaskID   string `json:"task"`
	// Path is the program, and Args are its arguments with its name before them.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is the whole environment, as KEY=VALUE.
	Env []string `json:"env"`
	// Dir is the working folder.
	Dir string `json:"dir"`
	// User is nil for the shim's user.
	User *User `json:"user,omitempty"`
	// Cgroup is the path of the control group, or empty for none. OwnCgroup: the driver has created
	// it, so the driver removes it.
	Cgroup    string `json:"cgroup,omitempty"`
	OwnCgroup bool   `json:"own_cgroup,omitempty"`
	// Root is the folder below which control groups are mounted: "/".
	Root   string `json:"root,omitempty"`
	Stdout Log    `json:"stdout"`
	Stderr Log    `json:"stderr"`
}

// User is the user of a task.
type User struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
}

// Log states where a stream goes.
type Log struct {
	// Path is a FIFO, a device or a file, which the task writes itself. Empty is /dev/null.
	Path string `json:"path,omitempty"`
	// Rotate: the shim writes the stream to the files Path.0, Path.1 and so on.
	Rotate bool `json:"rotate,omitempty"`
	// MaxFiles and MaxFileSize limit rotated files. Zero is the default of package tasklog.
	MaxFiles    int   `json:"max_files,omitempty"`
	MaxFileSize int64 `json:"max_file_size,omitempty"`
}

// A Phase is the state of a task.
type Phase string

// The phases, in their order. A task in phase Ending has an exit result, and processes that still
// run.
const (
	Starting Phase = "starting"
	Running  Phase = "running"
	Ending   Phase = "ending"
	Exited   Phase = "exited"
	// Failed: the task was not started, and no process is left.
	Failed Phase = "failed"
)

// Record is the state of a shim's task on disk.
type Record struct {
	Protocol  int              `json:"protocol"`
	TaskID    string           `json:"task"`
	Phase     Phase            `json:"phase"`
	Shim      process.Identity `json:"shim"`
	Task      process.Identity `json:"pid,omitzero"`
	Cgroup    string           `json:"cgroup,omitempty"`
	OwnCgroup bool             `json:"own_cgroup,omitempty"`
	StartedAt time.Time        `json:"started_at,omitzero"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	// Exit is set in the phases Ending and Exited.
	Exit *Exit `json:"exit,omitempty"`
	// Error states why the task was not started.
	Error string `json:"error,omitempty"`
}

// Exit is the result of a task.
type Exit struct {
	// Code is the exit code, 128 plus the signal if a signal ended the task.
	Code      int  `json:"code"`
	Signal    int  `json:"signal,omitempty"`
	OOMKilled bool `json:"oom_killed,omitempty"`
}

// recordSize is one page, because the kernel writes a page completely or not at all.
const recordSize = 4096

// write overwrites the record. The file keeps its size, so that the write needs no free space.
func (r *Record) write(f *os.File) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	if len(b) >= recordSize {
		return fmt.Errorf("the record of task %.100q has %d bytes, and at most %d fit", r.TaskID, len(b), recordSize-1)
	}
	page := append(b, bytes.Repeat([]byte{' '}, recordSize-len(b)-1)...)
	if _, err := f.WriteAt(append(page, '\n'), 0); err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// parseRecord reads a record.
func parseRecord(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("decode the record: %w", err)
	}
	switch r.Phase {
	case Starting, Running, Failed:
	case Ending, Exited:
		if r.Exit == nil {
			return Record{}, fmt.Errorf("the record has phase %q and no exit result", r.Phase)
		}
	default:
		return Record{}, fmt.Errorf("the record has an unknown phase %q", r.Phase)
	}
	if r.Protocol < 1 {
		return Record{}, errors.New("the record has no protocol version")
	}
	return r, nil
}

// exitOf converts the status of a process.
func exitOf(status syscall.WaitStatus) *Exit {
	if status.Signaled() {
		return &Exit{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	return &Exit{Code: status.ExitStatus()}
}

// An operation is a request that a client may send to a shim.
type operation string

const (
	opSignal operation = "signal"
	opStop   operation = "stop"
	opKill   operation = "kill"
)

// request is a line of JSON on the socket.
type request struct {
	Protocol  int       `json:"protocol"`
	Operation operation `json:"operation"`
	// Signal is a number. Grace is set for a stop only.
	Signal int           `json:"signal,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
}

// response is the answer to a request, as a line of JSON. It means that the shim has started the
// operation.
type response struct {
	Protocol int    `json:"protocol"`
	Error    string `json:"error,omitempty"`
}
