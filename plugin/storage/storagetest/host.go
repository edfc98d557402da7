package storagetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// Host is the part of a [Node] that needs no plugin, on a machine that mounts. The folder is empty.
type Host struct{ Folder string }

// Root implements [Node].
func (h Host) Root() string { return h.Folder }

// Mounted implements [Node]. It reads the mount table of the kernel.
func (Host) Mounted(t T, path string) bool {
	t.Helper()
	table, err := mounts.Read()
	if err != nil {
		t.Fatalf("reading the mount table: %v", err)
	}
	return table.Has(path)
}

// Use implements [Node].
func (Host) Use(target string) error {
	name := filepath.Join(target, "nodedrain-conformance")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		return err
	}
	if _, err := os.ReadFile(name); err != nil {
		return err
	}
	return os.Remove(name)
}

// MakeBusy implements [Node]. The process is the program sleep, which has the target as its folder
// for a minute at most.
func (Host) MakeBusy(t T, target string) (free func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	cmd := exec.CommandContext(ctx, "sleep", "60")
	cmd.Dir = target
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("starting a process: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	free = func() {
		cancel()
		<-ended
	}
	t.Cleanup(free)
	return free
}
