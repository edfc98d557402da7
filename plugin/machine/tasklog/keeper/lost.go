package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// EndLost ends the keepers of a task whose folder of logs is deleted, and with it their lock and their identity:
// the arguments of their processes still name the folder. It waits for them like [Keeper.Stop].
func EndLost(ctx context.Context, c Config) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	failed := []error{err}
	for _, line := range lines {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			continue
		}
		id, err := process.Identify(pid) // before its arguments are read: they are then of this process
		if err != nil {
			continue // it has ended
		}
		args, err := os.ReadFile(line)
		if err != nil || !c.isKeptBy(strings.Split(string(args), "\x00")) {
			continue
		}
		k := &Keeper{ID: id}
		switch k.process, err = process.Open(id); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			failed = append(failed, fmt.Errorf("end the log keeper of task %s: %w", c.Task, err))
		default:
			failed = append(failed, k.Stop(ctx))
		}
	}
	return errors.Join(failed...)
}

// isKeptBy reports whether a process with these arguments keeps the log.
func (c Config) isKeptBy(args []string) bool {
	for i := range args {
		if args[i] != "-protocol" {
			continue
		}
		kept, err := parseArgs(args[i : len(args)-1]) // each argument ends with a NUL
		return err == nil && kept.Logs == c.Logs && kept.Task == c.Task
	}
	return false
}
