package volume

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// visits describes when the next step of a volume can have an effect. A node has many volumes, and an
// event concerns few of them, so a step of the machine visits no others.
type visits struct {
	volume *runner
	// marked: something has changed since the last visit.
	marked bool
	// at is the earliest time that the last visit requested.
	at time.Duration
	// counted is the part of the volume in [Volumes.needs], for the plugin countedFor.
	counted    needs
	countedFor cluster.PluginID
}

// needs counts references for which a storage plugin is needed.
type needs struct {
	// mounted counts those that need one that mounts, leaving those that need a controller, and
	// either all.
	mounted, leaving, either int
}

func (n needs) plus(o needs, sign int) needs {
	return needs{n.mounted + sign*o.mounted, n.leaving + sign*o.leaving, n.either + sign*o.either}
}

// of returns how many need a plugin of the type.
func (n needs) of(t cluster.PluginType) int {
	switch {
	case t.Node() && t.Controller():
		return n.either
	case t.Node():
		return n.mounted
	case t.Controller():
		return n.leaving
	}
	return 0
}

// mark makes the machine visit the volume, after a change.
func (v *visits) mark() {
	v.marked = true
	v.noteChange()
}

// noteChange updates what is derived from the volume, after a change.
func (v *visits) noteChange() {
	var counted needs
	r := v.volume
	for _, f := range r.refs {
		if now := viewOf(r, f); now != f.last {
			f.last = now
			r.v.moved = append(r.v.moved, f.Alloc)
		}
		counted = counted.plus(needsOf(r, f), 1)
	}
	all := r.v.needs
	all[v.countedFor] = all[v.countedFor].plus(v.counted, -1)
	if all[v.countedFor] == (needs{}) {
		delete(all, v.countedFor)
	}
	v.counted, v.countedFor = counted, r.plugin
	if counted != (needs{}) {
		all[r.plugin] = all[r.plugin].plus(counted, 1)
	}
}

// view is what [Volumes.Status] and the [Need] of a reference depend on. Many allocations may share
// a volume, and a change of one reference concerns few of them. Failures stand for errors: each
// error counts one.
type view struct {
	phase                   RefPhase
	leaving, claimed, on    bool
	unconfirmed             bool
	requested               bool
	staged, excluded        bool
	differs, blocked        bool
	stage                   StagePhase
	plugin                  cluster.PluginID
	up, stopping            bool
	failures, stageFailures int
	refused, stageRefused   bool
	unsaved, stageUnsaved   bool
	saveFailures            int
	taken                   bool
}

func viewOf(r *runner, f *ref) view {
	l := view{
		phase: f.Phase, leaving: f.Leaving, claimed: f.claimed != nil, on: r.on(f), unconfirmed: f.unconfirmed, requested: f.requested, plugin: r.plugin, up: r.up(), stopping: r.v.plugins[r.plugin].leaving,
		failures: f.failures, refused: f.refused, unsaved: r.saveErr != nil && r.saved < f.needs, saveFailures: r.saveFailures, taken: true,
		differs: f.differs(r) != nil, blocked: f.blocked(r) != nil,
	}
	if s := r.stageOf(f.Usage); s != nil {
		l.staged, l.stage, l.excluded = true, s.Phase, s.excludes(f)
		l.stageFailures, l.stageRefused, l.stageUnsaved = s.failures, s.refused, r.saveErr != nil && r.saved < s.needs
	}
	return l
}

// visit steps the volume if this can have an effect.
func (v *visits) visit() {
	r, all := v.volume, v.volume.v
	if !v.marked && !all.reached(v.at) {
		return
	}
	others, version := all.wakeAt, r.version
	all.wakeAt, v.marked = Never, false
	all.visits++
	r.step()
	v.at, all.wakeAt = all.wakeAt, min(all.wakeAt, others)
	v.marked = r.version != version // the next visit handles what this one has changed
	v.noteChange()
}
