package private

import "golang.org/x/sys/unix"

// hasList reports whether a folder has an access control list. Then the rights of the group in the mode
// are those of the list's users and groups together. An error other than a missing list counts as one.
func hasList(folder string) bool {
	_, err := unix.Lgetxattr(folder, "system.posix_acl_access", nil)
	return err != unix.ENODATA && err != unix.ENOTSUP
}
