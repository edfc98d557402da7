package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func mustCode(t *testing.T, expected codes.Code, err error, words ...string) {
	t.Helper()
	must.Eq(t, expected, status.Code(err), must.Sprint(err))
	for _, w := range words {
		must.ErrorContains(t, err, w)
	}
}

// All calls of a volume from creation to deletion, each call twice. The program is killed between
// any two calls.
func TestPlugin_everyCallTwiceAndKilledBetween(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	u := user{machine: m, volume: "team/web data", node: "a", mode: singleWriter}
	restart := func() {
		if u.program != nil {
			u.kill(t)
		}
		u.program = m.start(t, "-node-id", "a", "-strict", m.path("log"))
	}
	for _, step := range []func() error{
		func() error { return u.create(t) },
		func() error { return u.attach(t) },
		func() error { return u.stage(t.Context()) },
		func() error { return u.publish(t, "one", false) },
		func() error { return os.WriteFile(u.target("one")+"/file", []byte("kept"), 0o600) },
		func() error { return u.publish(t, "two", true) },
		func() error { return u.unpublish(t, "one") },
		func() error { return u.unpublish(t, "two") },
		func() error { return u.unstage(t.Context()) },
		func() error { return u.detach(t) },
		func() error { return u.attach(t) },
		func() error { return u.stage(t.Context()) },
		func() error {
			text, err := os.ReadFile(u.staging() + "/file")
			must.Eq(t, "kept", string(text))
			return err
		},
		func() error { return u.unstage(t.Context()) },
		func() error { return u.detach(t) },
		func() error { return u.remove(t) },
	} {
		restart()
		must.NoError(t, step())
		must.NoError(t, step())
	}
	must.SliceEmpty(t, m.refused(t, "log"))
	must.Len(t, 28, m.entries(t, "log"))
	u.end(t)
	// Only the folders of the plugin and of the caller are left.
	must.DirNotExists(t, u.target("one"))
	must.DirExists(t, u.staging())
	for _, folder := range []string{"volumes"} {
		entries, err := os.ReadDir(m.path("root/" + folder))
		must.NoError(t, err)
		must.SliceEmpty(t, entries, must.Sprint(folder))
	}
}

// A read-only publication cannot be written to, also if the plugin died between its two mount
// calls.
func TestPlugin_readOnly(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	u := user{program: m.start(t, "-node-id", "a", "-create", "web"), machine: m, volume: "web", node: "a", mode: singleWriter}
	must.NoError(t, u.attach(t))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.publish(t, "rw", false))
	must.NoError(t, u.publish(t, "ro", true))
	write := func(target string) error { return os.WriteFile(u.target(target)+"/file", nil, 0o600) }
	must.NoError(t, write("rw"))
	must.ErrorIs(t, write("ro"), syscall.EROFS)
	mustCode(t, codes.AlreadyExists, u.publish(t, "rw", true), u.target("rw"))
	mustCode(t, codes.AlreadyExists, u.publish(t, "ro", false), u.target("ro"))
	// The state after a death between the two mount calls.
	must.NoError(t, unix.Mount("", u.target("ro"), "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	must.NoError(t, write("ro"))
	must.NoError(t, u.publish(t, "ro", true))
	must.ErrorIs(t, write("ro"), syscall.EROFS)

	must.NoError(t, u.unpublish(t, "rw"))
	must.NoError(t, u.unpublish(t, "ro"))
	must.NoError(t, u.unstage(t.Context()))
	must.NoError(t, u.detach(t))
	// A reader mode without the read-only flag is enough.
	u.mode = singleReader
	must.NoError(t, u.attach(t))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.publish(t, "rw", false))
	must.ErrorIs(t, write("rw"), syscall.EROFS)
	must.NoError(t, u.unpublish(t, "rw"))
	must.NoError(t, u.unstage(t.Context()))
}

// A strict plugin refuses each call that is out of order. Without the strict mode a plugin refuses
// only calls that it cannot execute.
func TestPlugin_order(t *testing.T) {
	t.Parallel()
	needMounts(t)
	for _, strict := range []bool{true, false} {
		m := newMachine(t)
		args := []string{"-node-id", "a", "-create", "web"}
		if strict {
			args = append(args, "-strict", m.path("log"))
		}
		u := user{program: m.start(t, args...), machine: m, volume: "web", node: "a", mode: singleWriter}
		refused := func(err error) {
			t.Helper()
			if strict {
				mustCode(t, codes.FailedPrecondition, err, "out of order")
			} else {
				must.NoError(t, err)
			}
		}
		mustCode(t, codes.FailedPrecondition, u.publish(t, "one", false))
		if strict {
			refused(u.stage(t.Context()))
		}
		must.NoError(t, u.attach(t))
		mustCode(t, codes.FailedPrecondition, u.publish(t, "one", false), "not staged")
		must.NoError(t, u.stage(t.Context()))
		must.NoError(t, u.publish(t, "one", false))
		mustCode(t, codes.FailedPrecondition, u.remove(t))
		refused(u.detach(t))
		refused(u.unstage(t.Context()))
		must.NoError(t, u.unpublish(t, "one"))
		refused(u.detach(t))
		must.NoError(t, u.unstage(t.Context()))
		refused(u.remove(t))
		must.NoError(t, u.detach(t))
		must.NoError(t, u.remove(t))
		if strict {
			must.Eq(t, []string{
				nodePublish + ": " + outOfOrder, nodeStage + ": " + outOfOrder, nodePublish + ": " + outOfOrder, deleteVolume + ": " + outOfOrder,
				controllerUnpublish + ": " + outOfOrder, nodeUnstage + ": " + outOfOrder, controllerUnpublish + ": " + outOfOrder, deleteVolume + ": " + outOfOrder,
			}, m.refused(t, "log"))
		}
	}
}

// A volume has at most one call in flight. A caller whose call was cancelled may call again.
func TestPlugin_inFlight(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	faults := m.path("faults")
	must.NoError(t, os.WriteFile(faults, []byte(`[{"call":"NodeStageVolume","delay":"1h"}]`), 0o600))
	u := user{
		program: m.start(t, "-node-id", "a", "-create", "web,other", "-strict", m.path("log"), "-faults", faults), machine: m, volume: "web", node: "a", mode: singleWriter,
	}
	must.NoError(t, u.attach(t))
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stage := func() { ended <- u.stage(ctx) }
	go stage()
	for status.Code(u.attach(t)) != codes.Aborted { // until the call hangs
		select {
		case err := <-ended: // it ran at the same time as a call of this test
			mustCode(t, codes.Aborted, err)
			go stage()
		default:
		}
	}
	other := u
	other.volume = "other"
	must.NoError(t, other.attach(t))
	giveUp()
	mustCode(t, codes.Canceled, <-ended)
	must.SliceEmpty(t, m.mounts(t))
	before := len(m.entries(t, "log"))
	for err := error(nil); status.Code(err) != codes.DeadlineExceeded; {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err = u.stage(ctx)
		cancel()
		must.Error(t, err)
	}
	must.NoError(t, os.Remove(faults))
	for err := u.stage(t.Context()); err != nil; err = u.stage(t.Context()) {
		mustCode(t, codes.Aborted, err) // the program has not noticed the cancellation yet
	}
	must.NoError(t, u.unstage(t.Context()))
	met := false
	for i, e := range m.entries(t, "log") {
		must.NotEq(t, outOfOrder, e.Verdict)
		must.True(t, e.Verdict != inFlight || i < before, must.Sprint("a caller that gave up made no mistake"))
		must.Eq(t, e.Verdict == inFlight || e.Verdict == abandoned, e.Code == "Aborted")
		met = met || e.Name == controllerPublish && e.Verdict == inFlight
	}
	must.True(t, met)
}

// A controller and two nodes are three programs with one root.
func TestPlugin_accessModes(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	controller := m.startAt(t, "controller", "-type", "controller", "-create", "web", "-strict", m.path("log"))
	on := func(node string) user {
		p := m.startAt(t, node, "-type", "node", "-node-id", node, "-strict", m.path("log"))
		p.ControllerClient = controller.ControllerClient
		return user{program: p, machine: m, volume: "web", node: node, mode: singleWriter}
	}
	a, b := on("a"), on("b")
	_, err := controller.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	mustCode(t, codes.Unimplemented, err)
	_, err = csi.NewControllerClient(a.conn).ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	mustCode(t, codes.Unimplemented, err)

	must.NoError(t, a.attach(t))
	mustCode(t, codes.FailedPrecondition, b.attach(t), "published to the node a")
	a.mode = singleReader
	mustCode(t, codes.AlreadyExists, a.attach(t), "published to the node a")
	must.NoError(t, a.detach(t))
	unknown := a
	unknown.node = "c"
	mustCode(t, codes.NotFound, unknown.attach(t), "no node c")

	for _, c := range []struct {
		mode   csi.VolumeCapability_AccessMode_Mode
		second codes.Code // of a second writer, on another node
		ro     bool
	}{{manyReaders, codes.OK, true}, {oneWriter, codes.FailedPrecondition, false}, {manyWriters, codes.OK, false}} {
		a.mode, b.mode = c.mode, c.mode
		for _, u := range []user{a, b} {
			must.NoError(t, u.attach(t))
			must.NoError(t, u.stage(t.Context()))
		}
		must.NoError(t, a.publish(t, "one", false))
		must.Eq(t, c.ro, os.WriteFile(a.target("one")+"/file", nil, 0o600) != nil)
		mustCode(t, c.second, b.publish(t, "one", false))
		must.NoError(t, b.publish(t, "two", true))
		// A node does not wait for other nodes.
		must.NoError(t, b.unpublish(t, "one"))
		must.NoError(t, b.unpublish(t, "two"))
		must.NoError(t, b.unstage(t.Context()))
		must.NoError(t, b.detach(t))
		must.NoError(t, a.unpublish(t, "one"))
		must.NoError(t, a.unstage(t.Context()))
		must.NoError(t, a.detach(t))
	}
	must.SliceEmpty(t, m.refused(t, "log"))
}

// A mounted volume is not deleted, also if the state does not contain the mount.
func TestPlugin_deleteMounted(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	u := user{program: m.start(t, "-node-id", "a", "-create", "web"), machine: m, volume: "web", node: "a", mode: singleWriter}
	must.NoError(t, u.attach(t))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, os.Remove(m.path("root/state.json")))
	mustCode(t, codes.FailedPrecondition, u.remove(t), u.staging())
	must.NoError(t, u.unstage(t.Context()))
	must.NoError(t, u.remove(t))
}

// After a restart of the machine the program finds no mounts, and mounts again.
func TestPlugin_mountsLost(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	u := user{program: m.start(t, "-node-id", "a", "-create", "web", "-strict", m.path("log")), machine: m, volume: "web", node: "a", mode: singleWriter}
	must.NoError(t, u.attach(t))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.publish(t, "one", false))
	for _, path := range []string{u.target("one"), u.staging()} {
		must.NoError(t, unix.Unmount(path, 0))
	}
	mustCode(t, codes.FailedPrecondition, u.publish(t, "one", false), "not staged")
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.publish(t, "one", false))
	must.Len(t, 2, m.mounts(t))
	must.NoError(t, u.unpublish(t, "one"))
	must.NoError(t, u.unstage(t.Context()))
	must.NoError(t, u.detach(t))
}

// Files and mounts at a path that do not belong to the volume stay.
func TestPlugin_foreignPaths(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	u := user{program: m.start(t, "-node-id", "a", "-create", "web,other"), machine: m, volume: "web", node: "a", mode: singleWriter}
	must.NoError(t, u.attach(t))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.publish(t, "one", false))
	other := u
	other.volume = "other"
	must.NoError(t, os.Mkdir(other.target("one"), 0o700))
	must.NoError(t, other.unpublish(t, "one"))
	must.DirExists(t, other.target("one"))
	_, err := u.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "other", TargetPath: u.target("one")})
	must.NoError(t, err)
	_, err = u.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: "other", StagingTargetPath: u.target("one"), VolumeCapability: capability(singleWriter),
	})
	mustCode(t, codes.FailedPrecondition, err, "something else is mounted at "+u.target("one"))
	must.Len(t, 2, m.mounts(t))
	// A mount that covers a volume is not unmounted.
	must.NoError(t, bind(m.path("root"), u.target("one"), false))
	mustCode(t, codes.FailedPrecondition, u.unpublish(t, "one"), "something else is mounted at "+u.target("one"))
	must.Len(t, 3, m.mounts(t))
	must.NoError(t, unmount(u.target("one")))
	must.NoError(t, bind(m.path("root"), u.staging(), false))
	mustCode(t, codes.FailedPrecondition, u.publish(t, "two", false), "not staged")
	must.NoError(t, unmount(u.staging()))
	// Paths may contain symbolic links, but a link cannot be a mount point.
	must.NoError(t, os.Symlink(m.dir, m.path("link")))
	over := m
	over.dir = m.path("link")
	u.machine = over
	must.NoError(t, u.publish(t, "two", false))
	must.NoError(t, u.stage(t.Context()))
	must.NoError(t, u.unpublish(t, "two"))
	must.DirNotExists(t, u.target("two"))
	u.machine = m
	must.Len(t, 2, m.mounts(t))
	must.NoError(t, os.Symlink(m.dir, u.target("link")))
	mustCode(t, codes.FailedPrecondition, u.publish(t, "link", false), "no folder")
	// A target with files below the mount is not removed.
	must.NoError(t, os.Mkdir(u.target("full"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(u.target("full"), "file"), nil, 0o600))
	must.NoError(t, u.publish(t, "full", false))
	mustCode(t, codes.Internal, u.unpublish(t, "full"), "remove the target")
	must.FileExists(t, filepath.Join(u.target("full"), "file"))
	must.NoError(t, u.unpublish(t, "one"))
	must.NoError(t, u.unstage(t.Context()))
}

// Secrets appear in no output, no log and no file.
func TestPlugin_secrets(t *testing.T) {
	t.Parallel()
	needMounts(t)
	m := newMachine(t)
	const secret = "hunter2"
	u := user{
		program: m.start(t, "-node-id", "a", "-strict", m.path("log")), machine: m, volume: "web", node: "a", mode: singleWriter,
		secrets: map[string]string{"password": secret},
	}
	mustCode(t, codes.FailedPrecondition, u.stage(t.Context()))
	for _, step := range []func() error{
		func() error { return u.create(t) }, func() error { return u.attach(t) }, func() error { return u.stage(t.Context()) },
		func() error { return u.publish(t, "one", false) }, func() error { return u.unpublish(t, "one") },
		func() error { return u.unstage(t.Context()) }, func() error { return u.detach(t) }, func() error { return u.remove(t) },
	} {
		must.NoError(t, step())
	}
	_, err := u.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "web", Parameters: u.secrets, Secrets: u.secrets, VolumeCapabilities: []*csi.VolumeCapability{capability(singleWriter)},
	})
	mustCode(t, codes.InvalidArgument, err)
	flags := capability(singleWriter)
	flags.GetMount().MountFlags = []string{"password=" + secret}
	_, err = u.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "web", StagingTargetPath: u.staging(), VolumeCapability: flags})
	mustCode(t, codes.InvalidArgument, err)
	u.end(t)
	must.StrContains(t, u.output.String(), nodePublish)
	must.StrNotContains(t, u.output.String(), secret)
	must.NoError(t, filepath.WalkDir(m.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		must.StrNotContains(t, string(text), secret, must.Sprint(path))
		return err
	}))
}

// Without the right to mount the program does not start. A controller does not need the right.
func TestPlugin_withoutRights(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	binary := m.path("program")
	text, err := os.ReadFile(os.Args[0])
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(binary, text, 0o755))
	for _, c := range []struct{ kind, expected string }{
		{monolith, "no right to mount: it needs root"}, {nodeOnly, "no right to mount: it needs root"}, {controllerOnly, "no absolute path of a unix socket"},
	} {
		cmd, out := m.command("-type", c.kind)
		cmd.Path = binary
		if c.kind == controllerOnly {
			cmd.Args = append(cmd.Args, "-endpoint", "relative") // exits after the check of its rights
		}
		if os.Geteuid() == 0 {
			must.NoError(t, os.Chown(m.dir, 65534, 65534))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		} else if checkRights(t.TempDir()) == nil {
			t.Skip("!!! NOT RUN: this user may mount, and cannot become another one")
		}
		must.Error(t, cmd.Run())
		must.StrContains(t, out.String(), c.expected)
	}
}

// Error messages for wrong flags.
func TestPlugin_mistakes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for _, c := range []struct {
		args     []string
		expected string
	}{
		{[]string{"-type", "both"}, "must be node, controller or monolith"},
		{[]string{"-root", ""}, "-root is required"},
		{[]string{"-root", "here"}, `the root "here" is no absolute path`},
		{[]string{"-endpoint", ""}, "CSI_ENDPOINT and -endpoint are empty"},
		{[]string{"-type", "node", "-create", "web"}, "-create is for controllers"},
		{[]string{"-node-id", strings.Repeat("x", 257)}, "the node id has 257 bytes"},
		{[]string{"-type", "controller", "-create", "a,,b"}, "no volume id"},
		{[]string{"extra"}, `unexpected argument "extra"`},
	} {
		cmd, out := m.command(c.args...)
		must.Error(t, cmd.Run())
		must.StrContains(t, out.String(), c.expected)
	}
}

// A program replaces the socket of a killed program, and not the socket of a running program. Other
// users may not use the socket.
func TestPlugin_socket(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.start(t, "-type", "controller")
	info, err := os.Stat(m.path("csi.sock"))
	must.NoError(t, err)
	must.Eq(t, 0o600, info.Mode().Perm())
	cmd, out := m.command("-type", "controller")
	must.Error(t, cmd.Run())
	must.StrContains(t, out.String(), "another program listens on")
	first.kill(t)
	must.FileExists(t, m.path("csi.sock"))
	m.start(t, "-type", "controller").end(t)
	must.FileNotExists(t, m.path("csi.sock"))
}

// Bug: a start failed while a child of the killed program still held the socket.
func TestPlugin_socketOfChild(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: m.path("csi.sock"), Net: "unix"})
	must.NoError(t, err)
	listener.SetUnlinkOnClose(false) // as after a kill
	socket, err := listener.File()
	must.NoError(t, err)
	input, end, err := os.Pipe()
	must.NoError(t, err)
	// The shell starts a child and exits. The child holds the socket until the pipe is closed.
	killed := exec.Command("sh", "-c", "cat <&4 &")
	killed.ExtraFiles = []*os.File{socket, input}
	must.NoError(t, killed.Run())
	must.NoError(t, errors.Join(socket.Close(), input.Close()))
	cmd, out := m.command("-type", controllerOnly)
	must.NoError(t, cmd.Start())
	_, accepted := listener.Accept() // of the plugin, which must now wait
	closed := listener.Close()
	_, held := net.Dial("unix", m.path("csi.sock"))
	must.NoError(t, errors.Join(accepted, closed, held, end.Close()))
	m.connect(t, "csi.sock", cmd, out).end(t)
}
