//go:build unix

package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// known is whether files have an owner and a mode.
const known = true

// Make makes a folder with mode 0700, and those above it that are missing with mode 0711. They
// survive a power failure. If the folder exists, Make returns an error if it belongs to another user or if other
// users may write to it. Root counts as another user here, but not for the folders above. Make
// returns the mode of the folder.
func Make(path string) (fs.FileMode, error) {
	real, err := follow(path, true)
	if err != nil {
		return 0, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return 0, err
	}
	owner, _ := owners(info)
	switch user := os.Geteuid(); {
	case !info.IsDir():
		return 0, fmt.Errorf("%s is not a folder", path)
	case owner != user:
		return 0, fmt.Errorf("%s belongs to another user (%d): run this as user %d, or name a folder of user %d", path, owner, owner, user)
	case info.Mode().Perm()&0o022 != 0:
		return 0, fmt.Errorf("other users may write to %s: check that all files in it are yours, and run \"chmod go-w %s\" (its mode is %04o)", path, path, info.Mode().Perm())
	}
	return info.Mode(), nil
}

// CheckAbove returns an error if another user can replace the file or folder at a path, because of
// the rights of a folder above it.
func CheckAbove(path string) error {
	_, err := follow(path, false)
	return err
}

// maxLinks is the largest number of symbolic links on one way, as in the kernel.
const maxLinks = 40

// follow goes from the root folder to the end of a path, and returns the end without symbolic links.
// It checks each folder and each link above the end. With missing it makes missing folders.
func follow(path string, missing bool) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	at, links := "/", 0
	left := strings.Split(absolute, "/")
	for ofPath := len(left); len(left) > 0; { // ofPath of the names that are left are not of a link
		name := left[0]
		left = left[1:]
		// The target of a link is not made: it may be on a disk that is not mounted.
		var mode fs.FileMode
		if missing && len(left) < ofPath {
			mode = 0o711
			if len(left) == 0 {
				mode = 0o700
			}
		}
		ofPath = min(ofPath, len(left))
		switch name {
		case "", ".":
			continue
		case "..": // of a link
			at = filepath.Dir(at)
			continue
		}
		if err := checkFolder(path, at); err != nil {
			return "", err
		}
		next := filepath.Join(at, name)
		info, err := entry(next, mode)
		switch {
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		case links == maxLinks:
			return "", fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		links++
		if owner, _ := owners(info); !trusted(owner) {
			return "", fmt.Errorf("%s belongs to another user (%d), who can replace %s: remove the link, or name another folder", next, owner, path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		left = append(strings.Split(target, "/"), left...)
	}
	return at, nil
}

// entry returns what is at a path. With a mode it makes a missing folder.
func entry(path string, mode fs.FileMode) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if mode == 0 || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	// Another user may have made something else meanwhile. The caller checks what is there.
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	above, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(above.Sync(), above.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) { // a folder may permit new entries and no read
		return nil, err
	}
	return os.Lstat(path)
}

// checkFolder checks a folder above the end of a path.
func checkFolder(path, folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	owner, group := owners(info)
	open := fs.FileMode(0o022)
	if group == owner && !hasList(folder) {
		open = 0o002
	}
	switch {
	case !trusted(owner):
		return fmt.Errorf("%s belongs to another user (%d), who can replace %s: name a path below folders of root or of user %d", folder, owner, path, os.Geteuid())
	case info.Mode().Perm()&open != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("other users may write to %s and so replace %s: run \"chmod go-w %s\", or name another path (its mode is %04o)", folder, path, folder, info.Mode().Perm())
	}
	return nil
}

func owners(info fs.FileInfo) (user, group int) {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid), int(stat.Gid)
	}
	return -1, -1
}

func trusted(user int) bool { return user == 0 || user == os.Geteuid() }
