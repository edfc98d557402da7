// Package socket keeps unix sockets to one user and root.
//
// Sockets lie in a folder of mode 0700 with a short path: the address of a socket has at most 107
// bytes. A server also checks the user of its peer, because the folder's mode does not protect a socket
// whose file descriptor was passed on.
package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// MaxPath is the length of the longest path of a socket, in bytes.
const MaxPath = 107

// MakeFolder makes a folder for sockets if it does not exist, and checks that only this user may use
// or replace it. The names of the sockets may have up to nameLength bytes.
func MakeFolder(path string, nameLength int) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("folder of sockets: %q is not an absolute path", path)
	}
	if need := len(path) + 1 + nameLength; need > MaxPath {
		return fmt.Errorf("folder of sockets: %s is too long: a socket in it would have a path of %d bytes, and the limit is %d", path, need, MaxPath)
	}
	mode, err := private.Make(path)
	if err == nil && mode.Perm()&0o077 != 0 {
		err = fmt.Errorf("%s has mode %04o, and must have 0700", path, mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("folder of sockets: %w", err)
	}
	return nil
}

// ErrPeer means that the peer of a connection is another user.
var ErrPeer = errors.New("the peer is another user")

// CheckPeer returns an error that wraps [ErrPeer] if the peer is neither this user nor root.
func CheckPeer(c *net.UnixConn) error {
	peer, err := Peer(c)
	if err != nil {
		return err
	}
	if peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: pid %d of user %d", ErrPeer, peer.Pid, peer.Uid)
	}
	return nil
}

// Peer returns process, user and group of the peer, as they were when it connected or listened.
func Peer(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("ask for the peer: %w", err)
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("ask for the peer: %w", err)
	}
	return peer, nil
}
