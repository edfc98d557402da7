package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
)

// asProgram is the environment variable that makes the test binary run as the plugin.
const asProgram = "NODEDRAIN_TEST_CSI"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	freshmachine.Enter()
	m.Run()
}

// machine is a folder for programs of the plugin, and their mounts.
type machine struct{ dir string }

// newMachine returns a folder. At the end of the test its mounts must be gone, unless the test failed.
func newMachine(t *testing.T) machine {
	t.Helper()
	base, err := os.MkdirTemp("", "csi")
	must.NoError(t, err)
	m := machine{resolve(base)}
	t.Cleanup(func() {
		left := m.mounts(t)
		for range len(left) { // a mount may cover another mount
			for _, path := range left {
				_ = unix.Unmount(path, unix.MNT_DETACH)
			}
		}
		must.NoError(t, os.RemoveAll(m.dir))
		if !t.Failed() {
			must.SliceEmpty(t, left)
		}
	})
	return m
}

// mounts returns the mount points below the folder.
func (m machine) mounts(t *testing.T) []string {
	t.Helper()
	table, err := readMounts()
	must.NoError(t, err)
	var points []string
	for _, one := range table {
		if strings.HasPrefix(one.Point, m.dir+"/") {
			points = append(points, one.Point)
		}
	}
	return points
}

func (m machine) path(name string) string { return filepath.Join(m.dir, name) }

// needMounts skips a test if it may not mount on this machine.
func needMounts(t *testing.T) {
	t.Helper()
	if err := checkRights(t.TempDir()); err != nil {
		t.Skipf("!!! NOT RUN: this user may not mount: %v", err)
	}
}

// program is a process of the plugin.
type program struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
	process *exec.Cmd
	output  *output
	conn    *grpc.ClientConn
}

type output struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write stores the output of a program.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// command returns a command of the plugin with this machine's root.
func (m machine) command(args ...string) (*exec.Cmd, *output) {
	out := &output{}
	cmd := exec.Command(os.Args[0], append([]string{"-root", m.path("root")}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "CSI_ENDPOINT=unix://"+m.path("csi.sock"))
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// start starts a program, and waits until it answers.
func (m machine) start(t *testing.T, args ...string) *program {
	t.Helper()
	return m.startAt(t, "csi.sock", args...)
}

func (m machine) startAt(t *testing.T, socket string, args ...string) *program {
	t.Helper()
	cmd, out := m.command(append([]string{"-endpoint", m.path(socket)}, args...)...)
	must.NoError(t, cmd.Start())
	return m.connect(t, socket, cmd, out)
}

// connect waits until a started program answers.
func (m machine) connect(t *testing.T, socket string, cmd *exec.Cmd, out *output) *program {
	t.Helper()
	again := backoff.DefaultConfig
	again.BaseDelay, again.MaxDelay = 10*time.Millisecond, 50*time.Millisecond // the program takes some time to listen
	conn, err := grpc.NewClient("unix://"+m.path(socket), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: again}))
	must.NoError(t, err)
	p := &program{
		IdentityClient: csi.NewIdentityClient(conn), ControllerClient: csi.NewControllerClient(conn), NodeClient: csi.NewNodeClient(conn),
		process: cmd, output: out, conn: conn,
	}
	t.Cleanup(func() {
		p.kill(t)
		if t.Failed() {
			t.Log(out.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready, err := p.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	must.NoError(t, err, must.Sprint(out))
	must.True(t, ready.GetReady().GetValue())
	return p
}

// kill kills a program and waits for its end. It may be called again.
func (p *program) kill(t *testing.T) {
	t.Helper()
	_ = p.conn.Close()
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
}

// end stops a program as a client does.
func (p *program) end(t *testing.T) {
	t.Helper()
	must.NoError(t, p.process.Process.Signal(syscall.SIGTERM))
	must.NoError(t, p.process.Wait(), must.Sprint(p.output))
	_ = p.conn.Close()
}

// entries returns the lines of a log of the strict mode.
func (m machine) entries(t *testing.T, name string) []entry {
	t.Helper()
	file, err := os.Open(m.path(name))
	must.NoError(t, err)
	defer file.Close()
	var all []entry
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e entry
		must.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		all = append(all, e)
	}
	return all
}

// refused returns the verdicts of a log that are not inOrder, with their calls.
func (m machine) refused(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, e := range m.entries(t, name) {
		if e.Verdict != inOrder {
			all = append(all, e.Name+": "+e.Verdict)
		}
	}
	return all
}

// capability returns the capability for an access mode.
func capability(m csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: m},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
}

// user calls a program, for one volume and one node.
type user struct {
	*program
	machine machine
	volume  string
	node    string
	mode    csi.VolumeCapability_AccessMode_Mode
	secrets map[string]string
}

func (u user) staging() string { return u.target("staging") }

func (u user) target(name string) string {
	return u.machine.path(strings.ReplaceAll(name+"-"+u.volume+"-"+u.node, "/", "_"))
}

func (u user) create(t *testing.T) error {
	t.Helper()
	_, err := u.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: u.volume, VolumeCapabilities: []*csi.VolumeCapability{capability(u.mode)}, Secrets: u.secrets,
	})
	return err
}

func (u user) remove(t *testing.T) error {
	t.Helper()
	_, err := u.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: u.volume, Secrets: u.secrets})
	return err
}

func (u user) attach(t *testing.T) error {
	t.Helper()
	_, err := u.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{
		VolumeId: u.volume, NodeId: u.node, VolumeCapability: capability(u.mode), Secrets: u.secrets,
	})
	return err
}

func (u user) detach(t *testing.T) error {
	t.Helper()
	_, err := u.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{
		VolumeId: u.volume, NodeId: u.node, Secrets: u.secrets,
	})
	return err
}

func (u user) stage(ctx context.Context) error {
	if err := os.Mkdir(u.staging(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	_, err := u.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: u.volume, StagingTargetPath: u.staging(), VolumeCapability: capability(u.mode), Secrets: u.secrets,
	})
	return err
}

func (u user) unstage(ctx context.Context) error {
	_, err := u.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: u.volume, StagingTargetPath: u.staging()})
	return err
}

func (u user) publish(t *testing.T, name string, readOnly bool) error {
	t.Helper()
	_, err := u.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: u.volume, StagingTargetPath: u.staging(), TargetPath: u.target(name), VolumeCapability: capability(u.mode),
		Readonly: readOnly, Secrets: u.secrets,
	})
	return err
}

func (u user) unpublish(t *testing.T, name string) error {
	t.Helper()
	_, err := u.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: u.volume, TargetPath: u.target(name)})
	return err
}
