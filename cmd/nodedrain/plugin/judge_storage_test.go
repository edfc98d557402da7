package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"
	"golang.org/x/sys/unix"
)

// needMounts skips a test where this user may not mount.
func needMounts(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("!!! NOT RUN: this user may not mount: %v", err)
	}
	must.NoError(t, unix.Unmount(dir, 0))
}

// The storage plugin to copy keeps all rules: its program, and its socket alone.
//
//race:skip its programs do not have the detector
func TestPluginTest_exampleStorage(t *testing.T) {
	t.Parallel()
	needMounts(t)
	path := built(t, "../../../examples/csi")
	code, out, errs := command(t.Context(), "plugin test -config ../../../examples/csi/test.json "+path)
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrContains(t, out, "11 passed, 0 failed, 0 skipped")

	// A script may start the plugin. Regression: only the script was killed.
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	must.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"+path+" \"$@\"\nexit $?\n"), 0o700))
	code, out, errs = command(t.Context(), "plugin test -run S8 -config ../../../examples/csi/test.json "+script)
	must.Zero(t, code, must.Sprint(out, errs))
	running, err := filepath.Glob("/proc/[0-9]*/exe")
	must.NoError(t, err)
	for _, exe := range running {
		of, _ := os.Readlink(exe) // it may have ended
		must.NotEq(t, path, of)
	}

	socket := filepath.Join(dir, "s")
	plugin := exec.CommandContext(t.Context(), path, "-root", filepath.Join(dir, "volumes"), "-endpoint", socket, "-node-id", "tested", "-create", "vol-1")
	must.NoError(t, plugin.Start())
	t.Cleanup(func() {
		_ = plugin.Process.Kill()
		_ = plugin.Wait()
	})
	listens := func() bool { return unix.Access(socket, unix.F_OK) == nil }
	must.Wait(t, wait.InitialSuccess(wait.BoolFunc(listens), wait.Timeout(time.Minute), wait.Gap(10*time.Millisecond)))
	code, out, errs = command(t.Context(), "plugin test -config "+written(t, `{"volume": "vol-1"}`)+" "+socket)
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrContains(t, out, "10 passed, 0 failed, 1 skipped")
	must.StrContains(t, out, "the test did not start the plugin, so it cannot start it again")
}

// A reader that ends early, such as head, does not end the test: the plugin is stopped and its folders are
// removed. Regression: the plugin ran on, with its volume mounted.
//
//race:skip its programs do not have the detector
func TestPluginTest_readerEnds(t *testing.T) {
	t.Parallel()
	needMounts(t)
	path, dir := built(t, "../../../examples/csi"), t.TempDir()
	program, err := os.Executable()
	must.NoError(t, err)
	nodedrain, temp := filepath.Join(dir, "nodedrain"), filepath.Join(dir, "tmp")
	must.NoError(t, os.Symlink(program, nodedrain)) // TestMain runs the command under this name
	must.NoError(t, os.Mkdir(temp, 0o700))
	pipe := exec.CommandContext(t.Context(), "/bin/sh", "-c", nodedrain+" plugin test -config ../../../examples/csi/test.json "+path+" | head -n 1")
	pipe.Env = append(os.Environ(), "TMPDIR="+temp)
	out, err := pipe.CombinedOutput()
	must.NoError(t, err)
	must.StrContains(t, string(out), "S1            passed")
	left, err := os.ReadDir(temp)
	must.NoError(t, err)
	must.SliceEmpty(t, left)
}

// The command names the rules that a wrong storage plugin breaks, and no others. Package storagetest breaks
// each rule over its double.
//
//race:skip its programs do not have the detector
func TestPluginTest_wrongStorage(t *testing.T) {
	t.Parallel()
	needMounts(t)
	const config = `{
		"args": ["-root", "{dir}/volumes", "-node-id", "tested", "-create", "vol-1", "-faults", "{dir}/faults"],
		"setup": ["/bin/sh", "-c", "echo '[{\"call\": \"%s\", \"fail\": 1}]' > {dir}/faults"],
		"volume": "vol-1"
	}`
	path := built(t, "../../../examples/csi")
	for _, story := range []wrongStory{
		{"NodeGetVolumeStats", "", ""}, // the tests do not call it
		{"NodeUnpublishVolume", "S2, S3, S3 undo, S4, S5, S7, S7 read only, S8", "NodeUnpublishVolume: Internal"},
		{"ControllerPublishVolume", "S1, S2, S3, S3 undo, S4, S5, S6, S7, S7 read only, S8, S9", "attaching the volume: ControllerPublishVolume: Internal"},
	} {
		t.Run(story.fault, func(t *testing.T) {
			t.Parallel()
			story.judge(t, path, fmt.Sprintf(config, story.fault), "storage", 0)
		})
	}
}
