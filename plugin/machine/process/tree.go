package process

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// Descendants returns the living processes below the process that has the pid: its children, their
// children, and so on. A process that forks meanwhile may be missing: call again until none is left.
func Descendants(pid int) ([]Identity, error) {
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	stats, err := readStats()
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, number := range slices.Sorted(maps.Keys(stats)) {
		parent := stats[number].parent
		children[parent] = append(children[parent], number)
	}
	var below []Identity
	next := children[pid]
	for len(next) > 0 {
		child := next[0]
		next = append(next[1:], children[child]...)
		id := Identity{Boot: boot, PID: child, Start: stats[child].start}
		alive, err := id.Alive()
		if err != nil {
			return nil, err
		}
		if alive {
			below = append(below, id)
		}
	}
	return below, nil
}

// KillDescendants kills the living processes below the process that has the pid. It returns when none
// is left, or after some attempts: a process in state D stays. It finds no process whose parent has
// ended, unless the process with the pid is a subreaper.
func KillDescendants(pid int) error {
	const tries = 100 // a process that forks while it is killed leaves children for the next one
	var errs []error
	for range tries {
		below, err := Descendants(pid)
		if err != nil || len(below) == 0 {
			return err
		}
		errs = nil
		for _, id := range below {
			errs = append(errs, kill(id))
		}
	}
	return errors.Join(errs...)
}

// readStats reads all processes of the machine by pid.
func readStats() (map[int]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	stats := map[int]stat{}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // not a process
		}
		switch st, err := readStat(e.Name()); {
		case errors.Is(err, ErrGone):
		case err != nil:
			return nil, err
		default:
			stats[number] = st
		}
	}
	return stats, nil
}

// KillSession kills the processes of the session that the process of the identity has begun, also
// after its own end, and waits until none lives. All get the signal before it waits for one, so a
// process that does not end protects no other. It is a last resort: processes that began a session
// of their own stay. It does nothing if the pid belongs to another process now.
func KillSession(ctx context.Context, leader Identity) error {
	killed := map[Identity]bool{}
	for {
		members, err := session(leader)
		if err != nil || len(members) == 0 {
			return err
		}
		known := len(killed)
		var errs []error
		for _, id := range members {
			if !killed[id] {
				killed[id] = true
				errs = append(errs, kill(id))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if len(killed) == known { // else they may have forked before the signal
			err = awaitEnd(ctx, members)
		} else {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// kill sends SIGKILL to a process. It is no error if it has ended.
func kill(id Identity) error {
	p, err := Open(id)
	if err == nil {
		defer p.Close()
		err = p.Signal(syscall.SIGKILL)
	}
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// awaitEnd waits until all of the processes have ended. It opens one at a time: there may be more
// of them than files that this process may open.
func awaitEnd(ctx context.Context, processes []Identity) error {
	for _, id := range processes {
		if err := AwaitEnd(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// session returns the living members of a session. While it has members, no other process gets the
// pid of its leader.
func session(leader Identity) ([]Identity, error) {
	boot, err := BootID()
	if err != nil || boot != leader.Boot {
		return nil, err
	}
	if now, err := Identify(leader.PID); err == nil && now != leader {
		return nil, nil
	}
	stats, err := readStats()
	if err != nil {
		return nil, err
	}
	var members []Identity
	for _, number := range slices.Sorted(maps.Keys(stats)) {
		st := stats[number]
		if st.session != leader.PID {
			continue
		}
		id := Identity{Boot: boot, PID: number, Start: st.start}
		alive, err := id.Alive()
		if err != nil {
			return nil, err
		}
		if alive {
			members = append(members, id)
		}
	}
	return members, nil
}
