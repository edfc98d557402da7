package volume

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Defaults of [Options].
const (
	DefaultMinRetry = 200 * time.Millisecond
	DefaultMaxRetry = 10 * time.Second
)

// Never means that no step is needed.
const Never time.Duration = 1<<63 - 1

// Options are what [Volumes] are built from.
type Options struct {
	// Shell executes the effects; required.
	Shell Shell
	// Post queues a function that the owner runs before its next step; required. It is safe for
	// concurrent use.
	Post func(func())
	// BootID names the present boot of the machine; required.
	BootID string
	// Root is the folder of all volumes. It is used in messages only.
	Root string
	// Records are the records of an earlier client. Volumes owns them.
	Records []*Record
	// Mounted are the paths at which something is mounted when the client starts. Volumes owns the
	// slice.
	Mounted []string
	// MinRetry and MaxRetry are the shortest and the longest wait before a failed call is retried.
	// The wait doubles with each consecutive failure. Zero is [DefaultMinRetry] and
	// [DefaultMaxRetry].
	MinRetry, MaxRetry time.Duration
	// Logger receives messages for operators. Nil means no log.
	Logger *slog.Logger
}

// Volumes is the step machine of the volumes of one node. Only its owner calls its methods.
type Volumes struct {
	options Options
	now     time.Duration
	wakeAt  time.Duration
	// answers run first in the next step.
	answers []func()
	// all are sorted by key.
	all []*runner
	// byAlloc are the runners with references of an allocation, sorted by key. It is an index: a
	// node has many volumes, and an allocation has few.
	byAlloc map[cluster.AllocID][]*runner
	// plugins are the running plugins, by id.
	plugins map[cluster.PluginID]Plugin
	// needs counts the references that need each plugin, by id. It is an index: a held plugin reads
	// the number in each of its visits.
	needs map[cluster.PluginID]needs
	// moved is the result of the next [Volumes.Moved].
	moved []cluster.AllocID
	// visits counts for [Volumes.Visits].
	visits int
}

// Plugin is a storage plugin of the node that answers.
type Plugin struct {
	// Stages: the plugin has the capability to stage volumes.
	Stages bool
	// leaving: the plugin must stop, so it mounts nothing more.
	leaving bool
}

// New returns a step machine that continues with the records.
func New(o Options) (*Volumes, error) {
	switch {
	case o.Shell == nil:
		return nil, errors.New("volume: Options.Shell is required")
	case o.Post == nil:
		return nil, errors.New("volume: Options.Post is required")
	case o.BootID == "":
		return nil, errors.New("volume: Options.BootID is required")
	case o.MinRetry < 0 || o.MaxRetry < 0:
		return nil, errors.New("volume: a duration of Options is negative")
	}
	o.MinRetry, o.MaxRetry = cmp.Or(o.MinRetry, DefaultMinRetry), cmp.Or(o.MaxRetry, DefaultMaxRetry)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &Volumes{options: o, plugins: make(map[cluster.PluginID]Plugin), byAlloc: make(map[cluster.AllocID][]*runner), needs: make(map[cluster.PluginID]needs)}
	for _, rec := range o.Records {
		v.runner(rec.Volume).restore(rec)
	}
	v.options.Records = nil
	return v, nil
}

// Step handles answers and starts the calls that are due. It returns the latest time of the next
// call, or [Never]. Additional calls are harmless.
func (v *Volumes) Step(now time.Duration) (wakeAt time.Duration) {
	v.now = now
	answers := v.answers
	v.answers = nil
	for _, take := range answers {
		take()
	}
	for again := true; again; {
		v.wakeAt, again = Never, false
		for _, r := range v.all {
			r.visit()
			again = again || r.marked
		}
	}
	v.all = slices.DeleteFunc(v.all, func(r *runner) bool { return r.gone() })
	return v.wakeAt
}

// Visits returns how often steps have visited a volume.
func (v *Volumes) Visits() int { return v.visits }

// Moved returns the allocations whose [Status] may have changed since the last call. An allocation
// can be in the result more than once.
func (v *Volumes) Moved() []cluster.AllocID {
	moved := v.moved
	v.moved = nil
	return moved
}

// reached reports whether the time is at or after at. If not, Step requests to be called at that time.
func (v *Volumes) reached(at time.Duration) bool {
	if at <= v.now {
		return true
	}
	v.wakeAt = min(v.wakeAt, at)
	return false
}

// Mount starts to mount the requested volumes for an allocation whose task will start. It can be
// repeated. It reports whether a request was new. A volume that an earlier client has mounted is
// mounted again, unless [Volumes.Confirm] was called: a call of that client may be in flight that
// unmounts it, and the record does not state it if the disk was full.
func (v *Volumes) Mount(requests []storage.Request) (changed bool) {
	for _, q := range requests {
		changed = v.runner(q.Volume).receive(q) || changed
	}
	return changed
}

// Identities returns the volumes of an allocation whose plugin is known.
func (v *Volumes) Identities(alloc cluster.AllocID) (ids []Identity) {
	for _, r := range v.byAlloc[alloc] {
		if r.plugin != "" {
			ids = append(ids, Identity{r.key, r.plugin, r.externalID})
		}
	}
	return ids
}

// Identify names a volume for the case that its record is lost, before [Volumes.Adopt]. Its mounts
// are then undone even if the servers do not answer, or no longer have a claim.
func (v *Volumes) Identify(id Identity) {
	if r := v.runner(id.Volume); r.plugin == "" {
		r.plugin, r.externalID = id.Plugin, id.ExternalID
	}
}

// Adopt adds the volumes of an allocation that may have mounted them before the client started, for
// the case that the record of a volume is lost. Mounts in the mount table are then used or undone,
// with the plugin of [Volumes.Identify], or else with the plugin that the claim names. ran states
// that tasks of the allocation ran, so that it has claims. Nothing is mounted before
// [Volumes.Mount] or [Volumes.Confirm]. Adopt can be repeated.
func (v *Volumes) Adopt(requests []storage.Request, ran bool) {
	for _, q := range requests {
		v.runner(q.Volume).adopt(q, ran)
	}
}

// Owe adds a claim that the servers have for an allocation, so that it is released when the
// allocation leaves. If the allocation has no record and the mount table shows a mount of it, the
// mount is undone first. Owe can be repeated.
func (v *Volumes) Owe(q storage.Request) {
	r := v.runner(q.Volume)
	if !slices.ContainsFunc(r.refs, func(f *ref) bool { return f.Alloc == q.Alloc }) {
		r.adopt(q, true)
		if f, added := r.add(q); added {
			f.unconfirmed = true
		}
	}
	for _, f := range r.refs {
		f.requested = f.requested || f.Alloc == q.Alloc
	}
	r.mark()
}

// Retry retries the refused calls of an allocation.
func (v *Volumes) Retry(alloc cluster.AllocID) {
	for _, r := range v.byAlloc[alloc] {
		r.retry()
	}
}

// Unmount starts to unmount all volumes of an allocation whose tasks have ended. It can be
// repeated. It reports whether this was new.
func (v *Volumes) Unmount(alloc cluster.AllocID) (changed bool) {
	for _, r := range v.byAlloc[alloc] {
		changed = r.leave(alloc) || changed
	}
	return changed
}

// Allocs returns the allocations that have volumes, sorted by id.
func (v *Volumes) Allocs() []cluster.AllocID {
	return slices.Sorted(maps.Keys(v.byAlloc))
}

// PluginUp states that a storage plugin answers. It must be called for each new process of the
// plugin.
func (v *Volumes) PluginUp(id cluster.PluginID, p Plugin) {
	v.plugins[id] = p
	for _, r := range v.all {
		if r.plugin == id {
			r.retry()
		}
	}
}

// PluginLeaves states that the process of a storage plugin is requested to stop, and that no other
// process of it runs. It still unmounts volumes, but it no longer mounts any: its volumes would be
// on the node without a plugin. The next [Volumes.PluginUp] ends this.
func (v *Volumes) PluginLeaves(id cluster.PluginID) {
	if p, is := v.plugins[id]; is {
		p.leaving = true
		v.plugins[id] = p
		v.markAll(id)
	}
}

// PluginDown states that a storage plugin does not answer.
func (v *Volumes) PluginDown(id cluster.PluginID) {
	delete(v.plugins, id)
	v.markAll(id)
}

// markAll marks the volumes of a plugin.
func (v *Volumes) markAll(id cluster.PluginID) {
	for _, r := range v.all {
		if r.plugin == id {
			r.mark()
		}
	}
}

// index adds a volume to the index of an allocation.
func (v *Volumes) index(r *runner, alloc cluster.AllocID) {
	of := v.byAlloc[alloc]
	if i, found := slices.BinarySearchFunc(of, r.key, func(o *runner, k cluster.VolumeKey) int { return o.key.Compare(k) }); !found {
		v.byAlloc[alloc] = slices.Insert(of, i, r)
	}
}

// drop removes the references of a volume for which gone is true.
func (v *Volumes) drop(r *runner, gone func(*ref) bool) {
	for _, f := range r.refs {
		if !gone(f) {
			continue
		}
		r.touch()
		v.moved = append(v.moved, f.Alloc)
		if of := slices.DeleteFunc(v.byAlloc[f.Alloc], func(o *runner) bool { return o == r }); len(of) > 0 {
			v.byAlloc[f.Alloc] = of
		} else {
			delete(v.byAlloc, f.Alloc)
		}
	}
	r.refs = slices.DeleteFunc(r.refs, gone)
	for _, f := range r.refs { // another usage of the same allocation
		v.index(r, f.Alloc)
	}
}

// runner returns the runner of a volume. It creates the runner if there is none.
func (v *Volumes) runner(k cluster.VolumeKey) *runner {
	i, found := slices.BinarySearchFunc(v.all, k, func(r *runner, k cluster.VolumeKey) int { return r.key.Compare(k) })
	if !found {
		r := &runner{v: v, key: k}
		r.calls.volume, r.visits.volume = r, r
		v.all = slices.Insert(v.all, i, r)
	}
	return v.all[i]
}

// answer returns a function that queues an answer for the next step.
func answer[T any](r *runner, take func(T)) func(T) {
	return func(got T) {
		r.v.options.Post(func() {
			r.v.answers = append(r.v.answers, func() {
				take(got)
				r.mark()
			})
		})
	}
}

// unmounted removes a path from those of the mounts that an earlier client has left.
func (v *Volumes) unmounted(path string) {
	v.options.Mounted = slices.DeleteFunc(v.options.Mounted, func(at string) bool { return at == path })
}

// backoff is the wait after a number of consecutive failures.
func (v *Volumes) backoff(failures int) time.Duration {
	wait := v.options.MinRetry
	for range failures - 1 {
		if wait >= v.options.MaxRetry/2 {
			return v.options.MaxRetry
		}
		wait *= 2
	}
	return min(wait, v.options.MaxRetry)
}
