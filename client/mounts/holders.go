package mounts

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client/process"
)

// MaxHolders bounds what [Holders] returns.
const MaxHolders = 8

// Holder is a process that keeps a mount busy.
type Holder struct {
	PID     int
	Command string
}

// Holders returns processes whose working directory, root, program, mapped files or open files are at a
// path or below it, in the order of their numbers. It sees those of other users as root only, and none of
// another mount namespace in which the mount has another path. It reads /proc alone.
func Holders(ctx context.Context, path string) []Holder {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var holders []Holder
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || ctx.Err() != nil {
			continue
		}
		if !holds(filepath.Join("/proc", entry.Name()), path) {
			continue
		}
		if d, err := process.Describe(pid); err == nil {
			holders = append(holders, Holder{PID: pid, Command: d.Command})
		}
		if len(holders) == MaxHolders {
			break
		}
	}
	return holders
}

// holds reports whether a process has something of the path.
func holds(proc, path string) bool {
	for _, link := range []string{"cwd", "root", "exe"} {
		if leadsTo(filepath.Join(proc, link), path) {
			return true
		}
	}
	for _, dir := range []string{"fd", "map_files"} {
		entries, err := os.ReadDir(filepath.Join(proc, dir))
		if err != nil {
			continue // the process has ended, or is another user's
		}
		for _, entry := range entries {
			if leadsTo(filepath.Join(proc, dir, entry.Name()), path) {
				return true
			}
		}
	}
	return false
}

// leadsTo reports whether a link of /proc names something at the path or below it. The kernel makes the
// text of the link without the file system.
func leadsTo(link, path string) bool {
	to, err := os.Readlink(link)
	return err == nil && strings.HasPrefix(to, "/") && within(strings.TrimSuffix(to, " (deleted)"), path)
}
