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
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxPath is the length of the longest path of a socket, in bytes.
const MaxPath = 107

// MakeFolder makes a folder for sockets if it does not exist, and checks that only this user may use
// it. The names of the sockets may have up to nameLength bytes.
func MakeFolder(path string, nameLength int) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("folder of sockets: %q is not an absolute path", path)
	}
	if need := len(path) + 1 + nameLength; need > MaxPath {
		return fmt.Errorf("folder of sockets: %s is too long: a socket in it would have a path of %d bytes, and the limit is %d", path, need, MaxPath)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("folder of sockets: %w", err)
	}
	return check(path)
}

// check returns an error if other users may use the folder.
func check(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("folder of sockets: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("folder of sockets: %s is not a folder", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("folder of sockets: %s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("folder of sockets: %s has mode %04o, and must have 0700", path, info.Mode().Perm())
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
