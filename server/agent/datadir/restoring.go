package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// restoringFile exists while the server replaces the state of its cluster by a saved one.
const restoringFile = "restoring"

// BeginRestore stores that the server replaces the state of its cluster by a saved one. Until
// EndRestore, [Open] refuses the directory: the other servers may not have that state, and raft would
// not take it back from this one.
func (d *Dir) BeginRestore() error { return d.keep(restoringFile, "a saved state is restored") }

// EndRestore stores that the servers have the restored state, or that nothing has changed.
func (d *Dir) EndRestore() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	if err := os.Remove(d.file(restoringFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	return syncDir(d.path)
}

// checkRestored returns an error if a restore was interrupted.
func (d *Dir) checkRestored() error {
	_, err := os.Lstat(d.file(restoringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return unsafe("the file %s means that this server was stopped while it restored a saved state, so the other servers may have another state: "+
		"if they have a leader (\"nodedrain server members\"), run \"nodedrain server recover -discard\" on this directory: it describes how this server joins again as a new member; "+
		"if they have had no leader since then, delete that file and start this server", d.file(restoringFile))
}
