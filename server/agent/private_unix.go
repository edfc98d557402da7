//go:build unix

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate returns an error if another user has a right to a file, or if the file is no file of
// data.
func checkPrivate(info fs.FileInfo) error {
	stat, is := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case !is || int(stat.Uid) != os.Geteuid():
		return errors.New("it belongs to another user: change its owner to the user of the server")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("its mode is %04o and must be 0600: other users may have read it, so create a new secret", info.Mode().Perm())
	case info.Mode()&^0o600 != 0: // executable, or with another bit
		return fmt.Errorf("its mode is %s and must be 0600", info.Mode())
	}
	return nil
}
