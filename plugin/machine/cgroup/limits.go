package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Limits are the resources of a group. They apply where the machine has the controllers. A zero
// field sets no limit.
type Limits struct {
	// CPUShares is the weight among groups that compete for the processor, in the unit of v1: 1,024
	// is the kernel's default.
	CPUShares int64
	// MemoryBytes is the most memory of all processes together. The kernel kills one of them when
	// they need more.
	MemoryBytes int64
	// MemoryLowBytes is the memory that the kernel takes from the group only if it finds no other.
	MemoryLowBytes int64
	// Cores are the cores that the group has for itself. Without any it shares the others.
	Cores cluster.Cores
}

// limit writes the limits. A file that does not exist has no controller here.
func (g *Group) limit(l Limits) error {
	files := map[string]int64{}
	if g.v2 != "" {
		files[filepath.Join(g.v2, "cpu.weight")] = weight(l.CPUShares)
		files[filepath.Join(g.v2, "memory.max")] = l.MemoryBytes
		files[filepath.Join(g.v2, "memory.low")] = l.MemoryLowBytes
	}
	for _, f := range g.v1 {
		switch f.controller {
		case "cpu":
			files[filepath.Join(f.path, "cpu.shares")] = l.CPUShares
		case "memory":
			files[filepath.Join(f.path, "memory.limit_in_bytes")] = l.MemoryBytes
			files[filepath.Join(f.path, "memory.soft_limit_in_bytes")] = l.MemoryLowBytes
		}
	}
	var failed []error
	for file, value := range files {
		if value == 0 {
			continue
		}
		if err := write(file, strconv.FormatInt(value, 10)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	if len(l.Cores) > 0 {
		failed = append(failed, g.pin(l.Cores))
	}
	if l.MemoryLowBytes > 0 && g.v2 != "" {
		failed = append(failed, g.home.protectParents())
	}
	return errors.Join(failed...)
}

// protectParents gives the parents in v2 the protection of their groups together: the kernel protects no group
// more than its parent.
func (h Hierarchies) protectParents() error {
	const file = "memory.low"
	top := filepath.Join(h.unified, slice)
	for _, dir := range []string{filepath.Join(top, share), filepath.Join(top, reserve), top} {
		groups, err := filepath.Glob(filepath.Join(dir, "*", file))
		if err != nil {
			return err
		}
		sum := int64(0)
		for _, group := range groups {
			text, err := os.ReadFile(group)
			if err != nil && !isGone(err) {
				return err
			}
			if low, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // "max" is nothing of ours
				sum += low
			}
		}
		if err := write(filepath.Join(dir, file), strconv.FormatInt(sum, 10)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// weight converts shares of v1, 2 to 262,144, to a weight of v2, 1 to 10,000.
func weight(shares int64) int64 {
	if shares == 0 {
		return 0
	}
	return 1 + (min(max(shares, 2), 262_144)-2)*9_999/262_142
}

// OOMKills returns how many processes of the group the kernel killed for want of memory. It is 0
// where no memory controller counts them.
func (g *Group) OOMKills() (int, error) {
	var files []string
	if g.v2 != "" {
		files = append(files, filepath.Join(g.v2, "memory.events"))
	}
	for _, f := range g.v1 {
		if f.controller == "memory" {
			files = append(files, filepath.Join(f.path, "memory.oom_control"))
		}
	}
	total := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if isGone(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("count out-of-memory kills: %w", err)
		}
		if n, ok := value(string(b), "oom_kill"); ok {
			total += n
		}
	}
	return total, nil
}

// value returns the number after a key in a flat keyed file of the kernel.
func value(text, key string) (int, bool) {
	for line := range strings.Lines(text) {
		if name, n, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
			v, err := strconv.Atoi(n)
			return v, err == nil
		}
	}
	return 0, false
}
