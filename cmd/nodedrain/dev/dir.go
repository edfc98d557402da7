package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// marker is a file in each directory of this package.
const marker = "made-by-nodedrain-dev"

// dir is the directory of a cluster, locked by this process.
type dir struct {
	path string
	lock *record.Lock
}

// openDir creates and locks a directory. It refuses one that other users can change, and one that
// this package did not create: the directory is emptied later.
func openDir(path string) (*dir, error) {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", path)
	}
	if _, err := private.Make(path); err != nil {
		return nil, err
	}
	if err := checkContent(path); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(path, marker), nil, 0o600); err != nil {
		return nil, err
	}
	lock, err := record.TakeLock(path)
	if errors.Is(err, record.ErrInUse) {
		return nil, fmt.Errorf("\"nodedrain dev\" runs already: %w; end that process first", err)
	}
	if err != nil {
		return nil, err
	}
	// The users of tasks pass through it. They cannot list it.
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &dir{path: path, lock: lock}, nil
}

// checkContent refuses a directory that contains other files.
func checkContent(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == marker }) {
		return fmt.Errorf("%s is not empty, and \"nodedrain dev\" did not make it: name another directory", path)
	}
	return nil
}

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }

// nodes returns the names of the nodes that have a directory, in order.
func (d *dir) nodes() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	var names []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), nodePrefix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// close releases the directory.
func (d *dir) close() error { return d.lock.Close() }

// leave releases the directory as it was found: nodes in it stay, and without nodes it is removed.
func (d *dir) leave() error {
	if names, err := d.nodes(); err != nil || len(names) > 0 {
		return errors.Join(err, d.close())
	}
	return d.remove()
}

// remove removes the directory and releases it. The marker goes last: a process that is killed here
// leaves a directory that the next one accepts.
func (d *dir) remove() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return errors.Join(err, d.close())
	}
	for _, e := range entries {
		if e.Name() != marker {
			err = errors.Join(err, os.RemoveAll(d.file(e.Name())))
		}
	}
	return errors.Join(err, os.RemoveAll(d.path), d.close())
}

// closedFolder returns the first folder on the way to a path that other users cannot pass, or nothing.
func closedFolder(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o001 == 0 {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}
