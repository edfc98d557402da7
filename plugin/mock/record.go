package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// record is the state of a task. It is a file in the task's folder.
type record struct {
	ID        driver.TaskID `json:"id"`
	Name      string        `json:"name"`
	Boot      string        `json:"boot"`
	Behaviour behaviour     `json:"behaviour"`
	StartedAt time.Time     `json:"started_at"`
	// End is when and how the task ends or has ended, or nil.
	End *end `json:"end,omitempty"`
	// Crashed: the driver has already crashed at the call that crash_at names.
	Crashed bool `json:"crashed,omitempty"`
}

type end struct {
	At   time.Time         `json:"at"`
	Exit driver.ExitResult `json:"exit"`
}

// ended reports whether the task has ended.
func (r *record) ended(now time.Time) bool { return r.End != nil && !r.End.At.After(now) }

// plan returns the record with the earlier of its end and the given end.
func (r record) plan(at time.Time, exit driver.ExitResult) record {
	if r.End == nil || at.Before(r.End.At) {
		r.End = &end{At: at, Exit: exit}
	}
	return r
}

// file is the path of a record.
type file struct {
	allocDir string
	name     string
}

// fileOf returns the path of a task's record. It encodes the task id, because ids contain slashes.
func fileOf(task *driver.TaskConfig) file {
	sum := sha256.Sum256([]byte(task.ID))
	return file{allocDir: task.AllocDir, name: filepath.Join(task.Name, ".mock-"+hex.EncodeToString(sum[:12])+".json")}
}

// write replaces the record.
func (f file) write(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the record of the task: %w", err)
	}
	return f.within("write", func(root *os.Root) error {
		if err := root.WriteFile(f.name+".new", text, 0o600); err != nil {
			return err
		}
		return root.Rename(f.name+".new", f.name)
	})
}

// read reads the record of a task. It refuses a record of an earlier boot.
func (f file) read(id driver.TaskID, boot string) (record, error) {
	var r record
	err := f.within("read", func(root *os.Root) error {
		text, err := root.ReadFile(f.name)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &r)
	})
	switch {
	case err != nil:
		return record{}, err
	case r.ID != id:
		return record{}, fmt.Errorf("the record is that of the task %q", r.ID)
	case r.Boot != boot:
		return record{}, errors.New("the machine has booted since the task started")
	}
	return r, nil
}

// exists reports whether there is a record.
func (f file) exists() (bool, error) {
	var found bool
	err := f.within("find", func(root *os.Root) error {
		_, err := root.Stat(f.name)
		found = err == nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return found, err
}

// remove removes the record, if there is one.
func (f file) remove() error {
	err := f.within("remove", func(root *os.Root) error { return root.Remove(f.name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f file) within(operation string, do func(*os.Root) error) error {
	root, err := os.OpenRoot(f.allocDir)
	if err == nil {
		err = errors.Join(do(root), root.Close())
	}
	if err != nil {
		return fmt.Errorf("%s the record of the task: %w", operation, err)
	}
	return nil
}
