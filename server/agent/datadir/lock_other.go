//go:build !unix

package datadir

import (
	"errors"
	"os"
	"runtime"
)

// lock returns an error. A data directory needs a lock that the end of the process releases, and
// directories that can be synced. This system can run the commands, and servers in memory.
func lock(string) (*os.File, error) {
	return nil, errors.New("is not safe on " + runtime.GOOS + ": run servers with a data directory on a Unix system")
}

// unlock closes the file. lock never succeeds here.
func unlock(f *os.File) error { return f.Close() }

// syncDir does nothing: there is no data directory.
func syncDir(string) error { return nil }
