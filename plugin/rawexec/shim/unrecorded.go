package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Starts returns the folders below the folder of all tasks that belong to starts of a task, by the ids
// that a client gives: ALLOC/TASK/RANDOM. It finds none if a name has a slash, because the id is then
// ambiguous.
func Starts(base, alloc, task string) ([]Folder, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(alloc+task, "/") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the folders of shims: %w", err)
	}
	var found []Folder
	for _, e := range entries {
		f := Folder(filepath.Join(base, e.Name()))
		r, err := f.Read()
		if err != nil {
			continue // a damaged record names no task, and must not delay the end of all others
		}
		if start, is := strings.CutPrefix(r.TaskID, alloc+"/"+task+"/"); is && !strings.Contains(start, "/") {
			found = append(found, f)
		}
	}
	return found, nil
}

// End stops a task whose driver and client have no record of it, waits for its end and removes the
// folder. The shim sends the signal and kills after the grace. If it does not answer, it is killed, and
// then the processes of the task's session. Processes that left the session are in the control group,
// which the caller kills.
func (f Folder) End(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	r, err := f.Read()
	if err != nil {
		return err
	}
	if f.Stop(ctx, sig, grace) != nil {
		err = process.Kill(ctx, r.Shim)
	} else {
		err = process.AwaitEnd(ctx, r.Shim)
	}
	if err == nil {
		r, err = f.Read()
	}
	if err == nil && r.Phase != Exited && r.Phase != Failed && !r.Task.IsZero() {
		err = process.KillSession(ctx, r.Task)
	}
	if err != nil {
		return fmt.Errorf("end task %q: %w", r.TaskID, err)
	}
	return f.Remove()
}
