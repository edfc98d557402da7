package socket_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/socket"
)

// folder returns a short folder for sockets, in one that other users may enter.
func folder(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "s")
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(base)) })
	must.NoError(t, os.Chmod(base, 0o711))
	dir := filepath.Join(base, "sockets")
	must.NoError(t, socket.MakeFolder(dir, 20))
	return dir
}

// listen listens on a socket in a folder, and returns the first connection.
func listen(t *testing.T, path string) (first func() *net.UnixConn) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return func() *net.UnixConn {
		c, err := l.AcceptUnix()
		must.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// Each side has the identity of the other one.
func TestPeer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folder(t), "a.sock")
	first := listen(t, path)
	c, err := net.Dial("unix", path)
	must.NoError(t, err)
	defer c.Close()
	for _, one := range []*net.UnixConn{first(), c.(*net.UnixConn)} {
		peer, err := socket.Peer(one)
		must.NoError(t, err)
		must.Eq(t, os.Getpid(), int(peer.Pid))
		must.NoError(t, socket.CheckPeer(one))
	}
}

// stranger makes this test binary a process of another user that connects.
const stranger = "NODEDRAIN_TEST_CONNECTS_TO"

// A connection of another user is refused although it reached the socket.
func TestCheckPeer_RefusesOtherUsers(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(stranger); path != "" {
		c, err := net.Dial("unix", path)
		must.NoError(t, err)
		_, err = io.ReadAll(c) // ends when the server closes it
		must.NoError(t, err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may start a process of another user")
	}
	dir := folder(t)
	path := filepath.Join(dir, "a.sock")
	first := listen(t, path)
	// The folder is opened afterwards: the check of the peer is all that is left.
	must.NoError(t, os.Chmod(dir, 0o711))
	must.NoError(t, os.Chmod(path, 0o777))
	program := filepath.Join(filepath.Dir(dir), "stranger")
	binary, err := os.ReadFile(os.Args[0])
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(program, binary, 0o755))
	cmd := exec.Command(program, "-test.run", "^"+t.Name()+"$")
	cmd.Env, cmd.Dir = []string{stranger + "=" + path}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	must.NoError(t, cmd.Start())
	c := first()
	err = socket.CheckPeer(c)
	must.ErrorIs(t, err, socket.ErrPeer)
	must.ErrorContains(t, err, "of user 65534")
	must.NoError(t, c.Close())
	must.NoError(t, cmd.Wait())
}

func TestMakeFolder_Refused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must.ErrorContains(t, socket.MakeFolder("run", 1), "absolute path")
	must.ErrorContains(t, socket.MakeFolder("/"+strings.Repeat("x", 100), 10), "the limit is 107")
	open := filepath.Join(base, "open")
	must.NoError(t, os.Mkdir(open, 0o755))
	must.ErrorContains(t, socket.MakeFolder(open, 1), "has mode 0755, and must have 0700")
	must.NoError(t, os.Symlink(base, filepath.Join(base, "link")))
	must.ErrorContains(t, socket.MakeFolder(filepath.Join(base, "link"), 1), "has mode 0755, and must have 0700")
	must.NoError(t, os.Chmod(base, 0o777))
	must.ErrorContains(t, socket.MakeFolder(filepath.Join(base, "new"), 1), "other users may write to "+base)
	must.NoError(t, os.Chmod(base, 0o755))
	if os.Geteuid() == 0 {
		foreign := filepath.Join(base, "foreign")
		must.NoError(t, os.Mkdir(foreign, 0o700))
		must.NoError(t, os.Chown(foreign, 65534, 65534))
		must.ErrorContains(t, socket.MakeFolder(foreign, 1), "belongs to another user")
	}
}
