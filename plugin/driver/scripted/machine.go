package scripted

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Machine is one node: its boots, processes and cgroups. It runs from [NewMachine] on.
type Machine struct {
	clock    Clock
	boot     int
	bootedAt time.Time
	off      bool

	// all are the processes of all boots in the order of their starts, and living those that run.
	all    []*process
	living []*process
	byID   map[Identity]*process
	// freeSince contains the time at which a pid was last freed in this boot.
	freeSince map[int]time.Time
	cgroups   map[string]*cgroup
	changes   []Change
	programs  []*Program
}

// cgroup is a folder of the cgroup file system.
type cgroup struct {
	// awaiting are called when the cgroup becomes empty.
	awaiting []func()
}

// NewMachine returns a machine that has just booted.
func NewMachine(clock Clock) *Machine {
	m := &Machine{clock: clock, byID: map[Identity]*process{}, off: true}
	m.Boot()
	return m
}

// RunFor makes a machine that has just booted one that has run for longer. Nothing has happened on it.
func (m *Machine) RunFor(uptime time.Duration) { m.bootedAt = m.bootedAt.Add(-uptime) }

// BootNumber returns the number of the present boot, or of the last one if the machine is off. The
// first is 1.
func (m *Machine) BootNumber() int { return m.boot }

// BootedAt returns the time of the present or last boot.
func (m *Machine) BootedAt() time.Time { return m.bootedAt }

// Halt ends all processes at once, as a loss of power does. Processes in state D end too.
func (m *Machine) Halt() {
	m.off = true
	for _, p := range slices.Clone(m.living) {
		m.end(p, signalExit(SIGKILL))
	}
	m.cgroups = nil
	for _, p := range m.programs {
		p.tasks = map[driver.TaskID]*task{}
	}
}

// Boot starts a machine that is off. It has no processes and no cgroups.
func (m *Machine) Boot() {
	if !m.off {
		return
	}
	m.off = false
	m.boot++
	m.bootedAt = m.clock.Now()
	m.freeSince = map[int]time.Time{}
	m.cgroups = map[string]*cgroup{}
}

// Processes returns the processes of all boots, in the order of their starts.
func (m *Machine) Processes() []Process { return rows(m.all) }

// Living returns the processes that run, in the order of their starts.
func (m *Machine) Living() []Process { return rows(m.living) }

// LivingIn returns the processes that run in a cgroup, in the order of their starts. Like all methods
// for cgroups except [Machine.EachLivingIn] it ignores contained processes.
func (m *Machine) LivingIn(cgroup string) []Process {
	return rows(m.in(cgroup))
}

// EachLiving yields the processes that run, in the order of their starts. The receiver must not
// write to the slices in them, and the table must not change meanwhile.
func (m *Machine) EachLiving() iter.Seq[Process] {
	return func(yield func(Process) bool) {
		for _, p := range m.living {
			if !yield(p.row) {
				return
			}
		}
	}
}

// EachLivingIn is [Machine.EachLiving] for the processes of one cgroup and the cgroups below it.
func (m *Machine) EachLivingIn(cgroup string) iter.Seq[Process] {
	return func(yield func(Process) bool) {
		for _, p := range m.living {
			if cgroup != "" && p.row.Cgroup == cgroup && !yield(p.row) {
				return
			}
		}
	}
}

// Process returns a process by its identity, whether it runs or has ended.
func (m *Machine) Process(id Identity) (Process, bool) {
	p := m.byID[id]
	if p == nil {
		return Process{}, false
	}
	return p.copyRow(), true
}

// Changes returns the changes of the process table, without the first n, in their order. The
// caller must not write to them.
func (m *Machine) Changes(n int) []Change { return slices.Clip(m.changes[n:]) }

// Spawn starts a process without a driver. A signal ends it. The machine sets its identity and
// times. The cgroup is empty or exists.
func (m *Machine) Spawn(row Process) (Identity, error) {
	p, err := m.start(row)
	if err != nil {
		return Identity{}, err
	}
	return p.row.Identity, nil
}

// NotifyEnd calls reply once a process has ended.
func (m *Machine) NotifyEnd(id Identity, reply func()) {
	p := m.byID[id]
	if p == nil || p.row.Ended {
		m.clock.After(0, reply)
		return
	}
	p.ended = append(p.ended, func() { m.clock.After(0, reply) })
}

// Signal sends a signal to a process. It has no effect on one that has ended, also if its pid
// belongs to another process now.
func (m *Machine) Signal(id Identity, signal Signal, by Sender) {
	if p := m.byID[id]; p != nil {
		m.signal(p, signal, by)
	}
}

// MakeCgroup makes a cgroup. It has no effect if it exists.
func (m *Machine) MakeCgroup(path string) {
	if m.cgroups[path] == nil && !m.off {
		m.cgroups[path] = &cgroup{}
	}
}

// RemoveCgroup removes a cgroup. It returns an error for a cgroup with processes, and nil for one
// that does not exist.
func (m *Machine) RemoveCgroup(path string) error {
	if n := len(m.in(path)); n > 0 {
		return fmt.Errorf("removing the cgroup %s: it has %d processes", path, n)
	}
	delete(m.cgroups, path)
	return nil
}

// Cgroups returns the paths of all cgroups, sorted.
func (m *Machine) Cgroups() []string {
	var paths []string
	for path := range m.cgroups {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// KillCgroup sends SIGKILL to all processes of a cgroup.
func (m *Machine) KillCgroup(path string, by Sender) {
	for _, p := range m.in(path) {
		m.signal(p, SIGKILL, by)
	}
}

// AwaitEmpty calls reply once no process is in the cgroup. A cgroup that does not exist is empty.
// cancel prevents the call.
func (m *Machine) AwaitEmpty(path string, reply func()) (cancel func()) {
	canceled := false
	unlessCanceled := func() {
		if !canceled {
			reply()
		}
	}
	if len(m.in(path)) > 0 {
		g := m.cgroups[path]
		g.awaiting = append(g.awaiting, unlessCanceled)
	} else {
		m.clock.After(0, unlessCanceled)
	}
	return func() { canceled = true }
}

// in returns the living processes of a cgroup.
func (m *Machine) in(path string) []*process {
	if path == "" {
		return nil
	}
	var found []*process
	for _, p := range m.living {
		if p.row.Cgroup == path && !p.row.Contained {
			found = append(found, p)
		}
	}
	return found
}

// start adds a process to the table.
func (m *Machine) start(row Process) (*process, error) {
	switch {
	case m.off:
		return nil, errors.New("the machine is off")
	case row.Cgroup != "" && m.cgroups[row.Cgroup] == nil:
		return nil, fmt.Errorf("the cgroup %s does not exist", row.Cgroup)
	}
	row.StartedAt = m.clock.Now()
	row.Identity = Identity{Boot: m.boot, PID: m.freePID(), Started: row.StartedAt.Sub(m.bootedAt)}
	p := &process{row: row}
	m.all = append(m.all, p)
	m.living = append(m.living, p)
	m.byID[row.Identity] = p
	m.record(Change{What: Started, Process: row.Identity})
	return p, nil
}

// freePID returns the lowest free pid, because the machine reuses pids as soon as it can. It skips
// a pid that became free at this instant, because its start time would be the same.
func (m *Machine) freePID() int {
	pid := 2
	for m.usesPID(pid) {
		pid++
	}
	return pid
}

func (m *Machine) usesPID(pid int) bool {
	since, was := m.freeSince[pid]
	return was && !since.Before(m.clock.Now()) || slices.ContainsFunc(m.living, func(p *process) bool { return p.row.PID == pid })
}

func (m *Machine) record(c Change) {
	c.At = m.clock.Now()
	m.changes = append(m.changes, c)
}

// signal sends a signal to a process.
func (m *Machine) signal(p *process, signal Signal, by Sender) {
	if p.row.Ended {
		return
	}
	p.row.Signals = append(p.row.Signals, SignalSent{At: m.clock.Now(), Signal: signal, By: by})
	m.record(Change{What: Signalled, Process: p.row.Identity, Signal: signal, By: by})
	switch {
	case p.row.Stuck:
	case signal == SIGKILL && p.killTakes > 0:
		p.row.Stuck = true
		p.after(m.clock, p.killTakes, func() { m.end(p, signalExit(SIGKILL)) })
	case signal == SIGKILL || p.react == nil:
		m.end(p, signalExit(signal))
	default:
		p.react(signal)
	}
}

// exit ends a process that ends by itself. One in state D does not.
func (m *Machine) exit(p *process, result driver.ExitResult) {
	if !p.row.Stuck {
		m.end(p, result)
	}
}

// end ends a process, and calls the functions that wait for its end.
func (m *Machine) end(p *process, result driver.ExitResult) {
	if p.row.Ended {
		return
	}
	p.row.Ended, p.row.EndedAt, p.row.Exit, p.row.Stuck = true, m.clock.Now(), result, false
	m.living = slices.DeleteFunc(m.living, func(other *process) bool { return other == p })
	m.freeSince[p.row.PID] = m.clock.Now()
	m.record(Change{What: Ended, Process: p.row.Identity})
	for _, do := range p.ended {
		do()
	}
	if g := m.cgroups[p.row.Cgroup]; g != nil && len(m.in(p.row.Cgroup)) == 0 {
		for _, reply := range g.awaiting {
			m.clock.After(0, reply)
		}
		g.awaiting = nil
	}
}

func (p *process) copyRow() Process {
	row := p.row
	row.Signals = slices.Clone(row.Signals)
	return row
}

func rows(processes []*process) []Process {
	list := make([]Process, 0, len(processes))
	for _, p := range processes {
		list = append(list, p.copyRow())
	}
	return list
}
