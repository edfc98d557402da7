package plugintest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// StorageOptions describe the program of a storage plugin, which speaks CSI. In a file they are a
// JSON object. The program gets the address of its socket in the environment variable CSI_ENDPOINT.
type StorageOptions struct {
	// Path is the absolute path of the program, or of the socket of a plugin that runs. It is not
	// part of a file.
	Path string `json:"-"`
	// Args are the arguments of the program. In them, in Env and in Setup, {dir} is a folder that
	// only one test uses.
	Args []string `json:"args"`
	// Env are the variables of the process, beside PATH and CSI_ENDPOINT: on a node the plugin is a
	// task, and has the variables of its job.
	Env map[string]string `json:"env"`
	// Setup is a command that runs before the plugin starts, or empty.
	Setup []string `json:"setup"`
	// Volume is the external id of a volume that nothing uses.
	Volume string `json:"volume"`
	// Context and Secrets go to the plugin with the volume.
	Context map[string]string `json:"context"`
	Secrets map[string]string `json:"secrets"`
	// Skips are the rules that the plugin cannot satisfy, with the reason.
	Skips map[string]string `json:"skips"`
}

// ReadStorage reads the options of a storage plugin from a file.
func ReadStorage(path, file string) (StorageOptions, error) {
	o := StorageOptions{Path: path}
	err := read(file, &o, func() error {
		return errors.Join(checkSkips(o.Skips, storagetest.Tests(storagetest.Harness{})), environment.Check(o.Env))
	})
	if err == nil && isSocket(path) {
		if o.Skips == nil {
			o.Skips = map[string]string{}
		}
		o.Skips["S8"] = "the test did not start the plugin, so it cannot start it again"
	}
	return o, err
}

// isSocket reports whether a path is that of a socket.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// StorageHarness returns the harness of a storage plugin. One test runs at a time, because all of
// them may use the same volume.
func StorageHarness(o StorageOptions) storagetest.Harness {
	return storagetest.Harness{
		New:      func(t storagetest.T) storagetest.Node { return newStorageNode(t, o) },
		OneByOne: true,
		Skips:    o.Skips,
	}
}

// storageNode is a node with a storage plugin: its process, or its socket alone.
type storageNode struct {
	storagetest.Host
	launcher *launcher
	of       StorageOptions
	plugin   *csi.Plugin
	// stop kills the process of the plugin and its children. It is nil if the test has started
	// none.
	stop context.CancelFunc
	// exited is closed when the process has ended.
	exited chan struct{}
}

var (
	_ storagetest.Node   = (*storageNode)(nil)
	_ conformance.Logger = (*storageNode)(nil)
)

func newStorageNode(t storagetest.T, o StorageOptions) *storageNode {
	t.Helper()
	n := &storageNode{launcher: newLauncher(t, Program{Path: o.Path, Setup: o.Setup}), of: o}
	t.Cleanup(func() { n.end(t) })
	// The mount table has paths without links.
	dir, err := filepath.EvalSymlinks(n.launcher.dir)
	if err != nil {
		t.Fatalf("the node's folder: %v", err)
	}
	n.Folder = filepath.Join(dir, "v")
	if err := os.Mkdir(n.Folder, 0o700); err != nil {
		t.Fatalf("making the folder of the volumes: %v", err)
	}
	n.begin(t)
	return n
}

// socket is where the plugin listens.
func (n *storageNode) socket() string {
	if isSocket(n.of.Path) {
		return n.of.Path
	}
	return filepath.Join(n.launcher.dir, "csi.sock")
}

// begin starts the program, and waits until the plugin answers.
func (n *storageNode) begin(t storagetest.T) {
	t.Helper()
	if err := n.launch(); err != nil {
		t.Fatalf("the plugin did not start: %v", err)
	}
	plugin, err := csi.Connect(n.socket())
	if err != nil {
		t.Fatalf("connecting to the plugin: %v", err)
	}
	n.plugin = plugin
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if err = plugin.Probe(ctx); err == nil {
			return
		}
		select {
		case <-time.After(probePause):
		case <-n.exited:
			t.Fatalf("the plugin did not start: it has ended\n%s", n.Log())
		case <-ctx.Done():
			t.Fatalf("the plugin did not start: %v\n%s", err, n.Log())
		}
	}
}

// probePause is the time between two probes of a plugin that starts.
const probePause = 50 * time.Millisecond

// launch starts the program, unless the plugin runs already.
func (n *storageNode) launch() error {
	if isSocket(n.of.Path) {
		return nil
	}
	log, err := os.OpenFile(n.launcher.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := make([]string, len(n.of.Args))
	for i, arg := range n.of.Args {
		args[i] = n.launcher.filled(arg)
	}
	// The process outlives the context of the test: it must still unmount.
	ctx, stop := context.WithCancel(context.Background())
	cmd, exited := exec.CommandContext(ctx, n.of.Path, args...), make(chan struct{})
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range n.of.Env {
		cmd.Env = append(cmd.Env, name+"="+n.launcher.filled(value))
	}
	cmd.Env = append(cmd.Env, "CSI_ENDPOINT=unix://"+n.socket())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the command alone
	// A script may have started the plugin. The process is not reaped yet, so no other one has its
	// pid.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		stop()
		return err
	}
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	n.stop, n.exited = stop, exited
	return nil
}

// kill kills the process of the plugin, if the test has started one, and closes the connection.
func (n *storageNode) kill() {
	if n.plugin != nil {
		_ = n.plugin.Close()
	}
	if n.stop != nil {
		n.stop()
		<-n.exited
	}
}

// end kills the plugin. A volume that is still mounted is left with its folder: to remove the
// folder would remove the files of the volume.
func (n *storageNode) end(t storagetest.T) {
	t.Helper()
	n.kill()
	table, err := mounts.Read()
	if err == nil && n.Folder != "" {
		if left := table.Below(filepath.Dir(n.Folder)); len(left) > 0 {
			err = fmt.Errorf("still mounted: %s", strings.Join(left, ", "))
		}
	}
	if err != nil {
		n.launcher.keep = true
		t.Errorf("the folder %s is not removed: %v", n.launcher.dir, err)
	}
}

// Log returns the end of the plugin's log.
func (n *storageNode) Log() string { return n.launcher.Log() }

// Plugin implements [storagetest.Node].
func (n *storageNode) Plugin() storagetest.Plugin { return n.plugin }

// Restart implements [storagetest.Node].
func (n *storageNode) Restart(t storagetest.T) {
	t.Helper()
	if n.stop == nil {
		t.Fatalf("the test did not start the plugin of volume %s", n.of.Volume)
	}
	n.kill()
	n.begin(t)
}

// Volume implements [storagetest.Node]. It attaches the volume to the node if the plugin is also a
// controller that attaches.
func (n *storageNode) Volume(t storagetest.T) storage.Claimed {
	t.Helper()
	claimed := storage.Claimed{ExternalID: n.of.Volume, Context: n.of.Context, Secrets: n.of.Secrets}
	d, err := n.plugin.Describe(t.Context(), cluster.PluginMonolith)
	if err != nil || !d.Attaches {
		return claimed // it has no controller
	}
	a := csi.Attachment{
		ExternalID: n.of.Volume, NodeID: d.NodeID, Context: n.of.Context, Secrets: n.of.Secrets,
		Capability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem},
	}
	if claimed.PublishContext, err = n.plugin.Attach(t.Context(), a); err != nil {
		t.Fatalf("attaching the volume: %v", err)
	}
	t.Cleanup(func() {
		if err := n.plugin.Detach(context.WithoutCancel(t.Context()), a); err != nil {
			t.Errorf("detaching the volume: %v", err)
		}
	})
	return claimed
}
