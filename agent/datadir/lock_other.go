//go:build !unix

package datadir

import (
	"errors"
	"os"
	"runtime"
)

// lock refuses: a data directory needs a lock that the end of a process releases, and directories
// that can be synced. Such a system runs the commands, and servers in memory.
func lock(string) (*os.File, error) {
	return nil, errors.New("cannot be kept safely on " + runtime.GOOS + ": run servers with a data directory on a Unix system")
}

// unlock has nothing to let go of: nothing is locked.
func unlock(f *os.File) error { return f.Close() }

// syncDir has nothing to do: there is no data directory.
func syncDir(string) error { return nil }
