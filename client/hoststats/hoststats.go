// Package hoststats measures the machine of a node: its memory, its processors, and the disk of the
// data directory. Package client/nodeapi answers GET /v1/client/stats with it.
package hoststats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// Window is the time over which the use of processors is measured.
const Window = 200 * time.Millisecond

// Options are the folders that are read and measured.
type Options struct {
	// Root is the folder above proc; empty is "/". Tests have another one.
	Root string
	// DataDir is a folder on the disk that is measured.
	DataDir string
}

// Sample is what was measured.
type Sample struct {
	Time   time.Time
	Memory Memory
	// CPUs are the processors, in the order of the kernel.
	CPUs   []CPU
	Disk   Disk
	Uptime time.Duration
}

// The types below have the form of the wire.

// Memory is in bytes. Available is what programs could get, the caches that the kernel would give up
// included. Used is the rest.
type Memory struct{ Total, Available, Used, Free uint64 }

// CPU is the use of one processor in percent. User has the time of niced programs, System that of
// interrupts, and Idle that of waits for disks. Time that a hypervisor gave to other machines is in none.
type CPU struct {
	Name               string `json:"CPU"`
	User, System, Idle float64
}

// Disk is the file system of a folder. Sizes are in bytes.
type Disk struct {
	// Device and Mountpoint are empty if the kernel does not list the file system.
	Device, Mountpoint    string
	Size, Used, Available uint64
	// UsedPercent is of what users may have: some file systems reserve a part for root.
	// InodesUsedPercent is zero on file systems that do not count inodes.
	UsedPercent, InodesUsedPercent float64
}

// Take measures the machine. It takes a [Window].
func Take(ctx context.Context, o Options) (*Sample, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	proc := filepath.Join(o.Root, "proc")
	before, err := readTicks(proc)
	if err != nil {
		return nil, err
	}
	wait := time.NewTimer(Window)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-wait.C:
	}
	after, err := readTicks(proc)
	if err != nil {
		return nil, err
	}
	s := &Sample{Time: time.Now(), CPUs: use(before, after)}
	if s.Memory, err = readMemory(proc); err != nil {
		return nil, err
	}
	if s.Uptime, err = readUptime(proc); err != nil {
		return nil, err
	}
	if s.Disk, err = readDisk(o.DataDir); err != nil {
		return nil, err
	}
	s.Disk.Device, s.Disk.Mountpoint = mountOf(proc, o.DataDir)
	return s, nil
}

// ticks is the time of one processor since the boot, in ticks.
type ticks struct {
	name                      string
	user, system, idle, total uint64
}

func readTicks(proc string) ([]ticks, error) {
	content, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return nil, fmt.Errorf("measure the processors: %w", err)
	}
	all := parseTicks(content)
	if len(all) == 0 {
		return nil, errors.New("measure the processors: the kernel names none")
	}
	return all, nil
}

// parseTicks reads the lines "cpuN user nice system idle iowait irq softirq steal guest guest_nice".
// The time of guests is in that of users.
func parseTicks(content []byte) []ticks {
	var all []ticks
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) < 5 || !strings.HasPrefix(words[0], "cpu") || words[0] == "cpu" {
			continue
		}
		var n [8]uint64
		for i, word := range words[1:min(len(words), 9)] {
			n[i], _ = strconv.ParseUint(word, 10, 48) // What is no number counts as none.
		}
		t := ticks{name: words[0], user: n[0] + n[1], system: n[2] + n[5] + n[6], idle: n[3] + n[4]}
		t.total = t.user + t.system + t.idle + n[7]
		all = append(all, t)
	}
	return all
}

// use returns what the processors did between two times. One that came meanwhile is left out.
func use(before, after []ticks) []CPU {
	was := make(map[string]ticks, len(before))
	for _, t := range before {
		was[t.name] = t
	}
	var all []CPU
	for _, now := range after {
		then, known := was[now.name]
		if !known {
			continue
		}
		c := CPU{Name: now.name}
		if now.total > then.total {
			share := func(now, then uint64) float64 {
				if now < then { // The kernel sometimes corrects its counts.
					return 0
				}
				return float64(now-then) * 100
			}
			all := float64(now.total - then.total)
			c.User, c.System, c.Idle = share(now.user, then.user)/all, share(now.system, then.system)/all, share(now.idle, then.idle)/all
		}
		all = append(all, c)
	}
	return all
}

func readMemory(proc string) (Memory, error) {
	content, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return Memory{}, fmt.Errorf("measure the memory: %w", err)
	}
	return parseMemory(content)
}

func parseMemory(content []byte) (Memory, error) {
	var m Memory
	for _, field := range []struct {
		name string
		to   *uint64
	}{{"MemTotal:", &m.Total}, {"MemFree:", &m.Free}, {"MemAvailable:", &m.Available}} {
		found := false
		for line := range bytes.Lines(content) {
			words := strings.Fields(string(line))
			if len(words) < 2 || words[0] != field.name {
				continue
			}
			kib, err := strconv.ParseUint(words[1], 10, 48)
			if err != nil {
				return m, fmt.Errorf("measure the memory: %s %q", field.name, words[1])
			}
			*field.to, found = kib<<10, true
			break
		}
		if !found {
			return m, fmt.Errorf("measure the memory: the kernel does not report %s", strings.TrimSuffix(field.name, ":"))
		}
	}
	m.Used = m.Total - min(m.Total, m.Available)
	return m, nil
}

func readUptime(proc string) (time.Duration, error) {
	content, err := os.ReadFile(filepath.Join(proc, "uptime"))
	if err != nil {
		return 0, fmt.Errorf("read the uptime: %w", err)
	}
	word, _, _ := strings.Cut(string(content), " ")
	seconds, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if err != nil || seconds < 0 || seconds > 1e9 {
		return 0, fmt.Errorf("read the uptime: %q", word)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func readDisk(dir string) (Disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Disk{}, fmt.Errorf("measure the disk: %w", &os.PathError{Op: "statfs", Path: dir, Err: err})
	}
	block := uint64(s.Bsize)
	d := Disk{Size: s.Blocks * block, Used: (s.Blocks - min(s.Blocks, s.Bfree)) * block, Available: s.Bavail * block}
	if all := d.Used + d.Available; all > 0 {
		d.UsedPercent = float64(d.Used) * 100 / float64(all)
	}
	if s.Files > 0 {
		d.InodesUsedPercent = float64(s.Files-min(s.Files, s.Ffree)) * 100 / float64(s.Files)
	}
	return d, nil
}

// mountOf returns the device and the mount point of a folder's file system, or nothing.
func mountOf(proc, dir string) (device, point string) {
	var s unix.Stat_t
	if unix.Stat(dir, &s) != nil {
		return "", ""
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", ""
	}
	content, err := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	if err != nil {
		return "", ""
	}
	table, _ := mounts.Parse(bytes.NewReader(content)) // the other lines may contain the folder
	return mountIn(table, fmt.Sprintf("%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev)), real)
}

// mountIn finds the longest mount point above a folder among those of one device.
func mountIn(table mounts.Table, number, dir string) (device, point string) {
	for _, m := range table {
		if m.Device == number && strings.HasPrefix(dir+"/", strings.TrimSuffix(m.Point, "/")+"/") && len(m.Point) >= len(point) {
			device, point = m.Source, m.Point
		}
	}
	return device, point
}
