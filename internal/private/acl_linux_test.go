package private_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// Bug: an access control list gave another user the right to replace a folder, and the mode showed
// only the right of a private group.
func TestMake_accessControlList(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	tree.folder("a/b", 0o700)
	tree.owner("a", 0, 0)
	tree.folder("a", 0o770)
	_, err := private.Make(tree.path("a/b"))
	must.NoError(t, err)

	list := binary.LittleEndian.AppendUint32(nil, 2) // the version, then tag, rights and id of each entry
	for _, e := range []struct {
		tag, rights uint16
		id          uint32
	}{{0x01, 7, ^uint32(0)}, {0x02, 7, stranger}, {0x04, 0, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.rights)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	err = unix.Setxattr(tree.path("a"), "system.posix_acl_access", list, 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("!!! NOT RUN: this file system has no access control lists")
	}
	must.NoError(t, err)
	must.Eq(t, 0o770, tree.mode("a"))
	_, err = private.Make(tree.path("a/b"))
	must.ErrorContains(t, err, "other users may write to "+tree.path("a"))
}
