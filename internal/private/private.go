// Package private makes folders that no other user can change.
//
// A folder is safe only if every folder above it is safe too: a user who may rename an entry of a
// folder above can put another folder in its place. So each folder above must belong to root or to
// the user of this process, and other users must not be able to write to it. There are two
// exceptions. In a folder with the sticky bit, as /tmp, a user can rename only the own entries. And
// the group of a folder may write if it has the number of the folder's owner: many systems give
// each user such a group, and it has no other member. A folder with an access control list has no
// such exception.
//
// A symbolic link on the way to a folder is followed if it belongs to root or to the user of this
// process. The way to its target is checked too.
//
// Systems other than Unix have no such owners and modes: there the functions check nothing.
package private

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Limit makes a folder as [Make] does, and removes from its mode the rights that widest does not
// have. It changes only a folder of this program: one that is empty, or that has an entry with one
// of these names. Otherwise it returns an error if the mode is wider, because other programs may
// need it. It returns the old permissions if it has changed them, and otherwise zero.
func Limit(path string, widest fs.FileMode, own ...string) (before fs.FileMode, err error) {
	mode, err := Make(path)
	if err != nil || !known || mode.Perm()&^widest == 0 {
		return 0, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return 0, err
	}
	foreign := func(e fs.DirEntry) bool { return e.Name() != "lost+found" } // of an empty file system
	ours := func(e fs.DirEntry) bool { return slices.Contains(own, e.Name()) }
	if slices.ContainsFunc(entries, foreign) && !slices.ContainsFunc(entries, ours) {
		return 0, fmt.Errorf("%s has mode %04o and files of other programs: name another folder, or run \"chmod %04o %s\" if no other program needs it",
			path, mode.Perm(), mode.Perm()&widest, path)
	}
	return mode.Perm(), os.Chmod(path, mode&^(fs.ModePerm&^widest))
}
