package volume

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Status is the state of the volumes of an allocation.
type Status struct {
	// Ready: all of them are published.
	Ready bool
	// Failed is why a volume cannot be published, or nil. [Volumes.Retry] tries again.
	Failed error
	// Off: no volume is mounted on the node for this allocation. Claims may still have to be
	// released.
	Off bool
	// Waits states what each volume waits for.
	Waits []Wait
}

// Wait describes what a volume waits for.
type Wait struct {
	Volume cluster.VolumeKey
	Alloc  cluster.AllocID
	// Plugin is the id of the storage plugin, or empty while it is unknown.
	Plugin cluster.PluginID
	// What is the next action, as a text, and Path its path, or empty.
	What, Path string
	// Err is why the last attempt failed, or nil.
	Err error
	// Mounted: the volume may be staged or published on the node. False means that it must be
	// claimed or released.
	Mounted bool
	// Undoes: the volume must be unmounted. Sought: the last call for that failed. Holders are then
	// the processes that use it, if /proc shows them.
	Undoes  bool
	Sought  bool
	Holders []storage.Holder
}

// String is a text for operators.
func (w Wait) String() string {
	text := fmt.Sprintf("volume %s %s", w.Volume, w.Reason())
	if w.Path != "" {
		text += "; at " + w.Path
	}
	return text
}

// Reason is like String without the volume and the path. Reports cut long texts, so the most
// important part is at the start.
func (w Wait) Reason() string {
	var text strings.Builder
	text.WriteString(w.What)
	switch {
	case !w.Sought || w.Path == "":
	case len(w.Holders) == 0:
		text.WriteString("; no process was found that keeps it busy")
	default:
		text.WriteString("; kept busy by")
		for i, h := range w.Holders {
			if i > 0 {
				text.WriteString(",")
			}
			fmt.Fprintf(&text, " process %d (%s)", h.PID, h.Command)
		}
	}
	if w.Err != nil {
		fmt.Fprintf(&text, ": %v", w.Err)
	}
	return text.String()
}

// Status returns the state of the volumes of an allocation. Without volumes it is ready and off.
func (v *Volumes) Status(alloc cluster.AllocID) Status {
	s := Status{Ready: true, Off: true}
	for _, r := range v.byAlloc[alloc] {
		for _, f := range r.refs {
			if f.Alloc == alloc {
				r.judge(f, &s)
			}
		}
	}
	return s
}

func (r *runner) judge(f *ref, s *Status) {
	s.Ready = s.Ready && f.Phase == Published && !f.Leaving
	s.Off = s.Off && !r.on(f)
	if f.Leaving || f.Phase != Published {
		s.Waits = append(s.Waits, r.wait(f))
	}
	if f.Leaving || s.Failed != nil {
		return
	}
	blocked, stage := f.blocked(r), r.stageOf(f.Usage)
	switch {
	case blocked != nil:
		s.Failed = fmt.Errorf("volume %s: %w", r.key, blocked)
	case stage.excludes(f):
		s.Failed = fmt.Errorf("volume %s: %w", r.key, errOtherOptions)
	case f.refused:
		s.Failed = fmt.Errorf("volume %s: %w", r.key, f.err)
	case stage != nil && stage.Phase == Staging && stage.refused:
		s.Failed = fmt.Errorf("volume %s: %w", r.key, stage.err)
	}
}

// on reports whether the volume may be on the node for a reference. A stage that other references
// need does not count for a reference that leaves.
func (r *runner) on(f *ref) bool {
	return f.Phase.mounted() || f.Phase != Claiming && r.stageOf(f.Usage) != nil && (!f.Leaving || !r.needed(f.Usage))
}

// Need is a reference that needs a storage plugin on the node: the volume is or will be staged or
// published, or is being released. It is valid until the next step.
type Need struct {
	runner *runner
	ref    *ref
}

// Wait states what the reference waits for.
func (n Need) Wait() Wait { return n.runner.wait(n.ref) }

// Serving returns the references that need a storage plugin of the type on the node, by volume. It
// computes no texts, because a node may have many volumes and a message names few of them.
func (v *Volumes) Serving(plugin cluster.PluginID, t cluster.PluginType) iter.Seq[Need] {
	return func(yield func(Need) bool) {
		for _, r := range v.all {
			// A volume whose plugin is unknown may belong to any plugin.
			if r.plugin != "" && r.plugin != plugin {
				continue
			}
			for _, f := range r.refs {
				if needsOf(r, f).of(t) > 0 && !yield(Need{r, f}) {
					return
				}
			}
		}
	}
}

// CountServing returns how many references [Volumes.Serving] returns.
func (v *Volumes) CountServing(plugin cluster.PluginID, t cluster.PluginType) int {
	return v.needs[plugin].of(t) + v.needs[""].of(t)
}

// needsOf states for which types of plugins the reference needs one.
func needsOf(r *runner, f *ref) (n needs) {
	if r.on(f) {
		n.mounted, n.either = 1, 1
	}
	// A volume that leaves needs a controller when it has left, to detach it.
	if f.Leaving && (n.mounted > 0 || f.requested) {
		n.leaving, n.either = 1, 1
	}
	return n
}

// wait states what a reference waits for.
func (r *runner) wait(f *ref) Wait {
	w := Wait{Volume: r.key, Alloc: f.Alloc, Plugin: r.plugin, Undoes: f.Leaving, Mounted: r.on(f)}
	a, plugin := &f.attempt, true
	s := r.stageOf(f.Usage)
	switch {
	case f.Leaving && f.Phase.mounted():
		w.What, w.Path = "must be unpublished", f.target
	case s != nil && s.Phase == Unstaging:
		w.What, w.Path, w.Undoes, a = "must be unstaged", storage.StagePath(r.v.options.Root, r.key, f.Usage), true, &s.attempt
	case f.Leaving:
		w.What, plugin = "must be released by the servers", false
	case f.Phase == Published:
		w.What, plugin = "is published", false
		w.Path = f.target
	case f.unconfirmed:
		w.What, w.Path, plugin = "may be mounted by an earlier client, and waits until the driver confirms that a task runs", f.target, false
	case f.claimed == nil:
		w.What, plugin = "must be claimed", false
	case f.differs(r) != nil:
		w.What, w.Err = "cannot be mounted yet", f.differs(r)
		return w
	case s.excludes(f):
		w.What, w.Path, w.Err = "must be unstaged", storage.StagePath(r.v.options.Root, r.key, f.Usage), errOtherOptions
		return w
	case s == nil || s.Phase == Staging:
		w.What, w.Path = "must be staged", storage.StagePath(r.v.options.Root, r.key, f.Usage)
		if s != nil {
			a = &s.attempt
		}
	default:
		w.What, w.Path = "must be published", f.target
	}
	w.Err, w.Holders, w.Sought = a.err, slices.Clone(a.holders), w.Undoes && a.err != nil
	switch {
	case plugin && r.plugin == "":
		w.Sought = false // nothing was called
		w.Err = cmp.Or(a.err, errors.New("the servers have not named its storage plugin"))
	case plugin && !r.up():
		w.Err, w.Holders, w.Sought = fmt.Errorf("the storage plugin %q does not answer", r.plugin), nil, false
	case plugin && !w.Undoes && r.v.plugins[r.plugin].leaving:
		w.Err, w.Holders, w.Sought = fmt.Errorf("the storage plugin %q is stopping", r.plugin), nil, false
	case r.saveErr != nil && r.saved < a.needs:
		w.Err, w.Holders, w.Sought = fmt.Errorf("the record of the volume cannot be written: %w", r.saveErr), nil, false
	}
	return w
}
