package socket_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/socket"
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

// The same user connects, also after a killed server left its socket behind.
func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folder(t), "a.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must.NoError(t, err)
	left.SetUnlinkOnClose(false)
	must.NoError(t, left.Close())

	l, err := socket.Listen(path, nil)
	must.NoError(t, err)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	c, err := socket.Dial(t.Context(), path)
	must.NoError(t, err)
	said, err := io.ReadAll(c)
	must.NoError(t, err)
	must.Eq(t, "hello", string(said))
	peer, err := socket.Peer(c.(*net.UnixConn))
	must.NoError(t, err)
	must.Eq(t, os.Getpid(), int(peer.Pid))
	must.NoError(t, c.Close())
	must.NoError(t, l.Close())
	_, err = socket.Dial(t.Context(), path)
	must.Error(t, err)
}

// stranger makes this test binary a process of another user that connects.
const stranger = "NODEDRAIN_TEST_CONNECTS_TO"

// A connection of another user is refused although it reached the socket.
func TestListen_RefusesOtherUsers(t *testing.T) {
	t.Parallel()
	if path := os.Getenv(stranger); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(c) // ends when the server closes it
		must.NoError(t, err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may start a process of another user")
	}
	dir := folder(t)
	path := filepath.Join(dir, "a.sock")
	refused := make(chan error, 1)
	l, err := socket.Listen(path, func(err error) { refused <- err })
	must.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
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
	out, err := cmd.CombinedOutput()
	must.NoError(t, err, must.Sprint(string(out)))
	err = <-refused
	must.ErrorIs(t, err, socket.ErrPeer)
	must.ErrorContains(t, err, "of user 65534")
	must.NoError(t, l.Close())
	must.True(t, errors.Is(<-ended, net.ErrClosed))
}

func TestMakeFolder_Refused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	must.ErrorContains(t, socket.MakeFolder("run", 1), "absolute path")
	must.ErrorContains(t, socket.MakeFolder("/"+strings.Repeat("x", 100), 10), "the limit is 107")
	open := filepath.Join(base, "open")
	must.NoError(t, os.Mkdir(open, 0o755))
	must.ErrorContains(t, socket.MakeFolder(open, 1), "has mode 0755, and must have 0700")
	_, err := socket.Listen(filepath.Join(open, "a"), nil)
	must.ErrorContains(t, err, "must have 0700")
	must.NoError(t, os.Symlink(base, filepath.Join(base, "link")))
	must.ErrorContains(t, socket.MakeFolder(filepath.Join(base, "link"), 1), "is not a folder")
	if os.Geteuid() == 0 {
		foreign := filepath.Join(base, "foreign")
		must.NoError(t, os.Mkdir(foreign, 0o700))
		must.NoError(t, os.Chown(foreign, 65534, 65534))
		must.ErrorContains(t, socket.MakeFolder(foreign, 1), "belongs to another user")
	}
}
