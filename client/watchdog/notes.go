package watchdog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// noteSuffix ends the name of the file of a note. A file that is not complete has another suffix.
const noteSuffix = ".stopped"

func notePath(dir string, alloc cluster.AllocID) string {
	return filepath.Join(dir, pathname.Encode(string(alloc))+noteSuffix)
}

// writeNote replaces the note of an allocation. It need not survive a power failure, which ends all
// tasks.
func writeNote(dir string, alloc cluster.AllocID, content []byte) error {
	path := notePath(dir, alloc)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Note returns what watchdogs have stopped of an allocation, or nil if they have stopped nothing.
func Note(dir string, alloc cluster.AllocID) (*guard.Stopped, error) {
	content, err := os.ReadFile(notePath(dir, alloc))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the note of the watchdog: %w", err)
	}
	s, err := parseNote(content)
	if err != nil {
		return nil, fmt.Errorf("read the note of the watchdog: %w", err)
	}
	return &s, nil
}

// Notes returns what watchdogs have stopped, by allocation. The folder need not exist. A damaged
// note is removed: it only explains an end.
func Notes(dir string) ([]guard.Stopped, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the notes of the watchdog: %w", err)
	}
	var all []guard.Stopped
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), noteSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the notes of the watchdog: %w", err)
		}
		s, err := parseNote(content)
		if err != nil {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

func parseNote(content []byte) (guard.Stopped, error) {
	var s guard.Stopped
	if err := json.Unmarshal(content, &s); err != nil {
		return s, err
	}
	if s.Alloc == "" {
		return s, errors.New("the note names no allocation")
	}
	for task, at := range s.Signals {
		if at < 0 {
			return s, fmt.Errorf("the time of task %q is negative", task)
		}
	}
	return s, nil
}

// Forget removes the note of an allocation, if there is one.
func Forget(dir string, alloc cluster.AllocID) error {
	err := os.Remove(notePath(dir, alloc))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
