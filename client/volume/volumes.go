package volume

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
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
	// Shell acts for the machine; required.
	Shell Shell
	// Post queues a function that the owner runs before its next step; required. It is safe for
	// concurrent use.
	Post func(func())
	// BootID names the present boot of the machine; required.
	BootID string
	// Root is the folder of all volumes, for the words that operators read.
	Root string
	// Records are the records that an earlier client has left. The machine owns them.
	Records []*Record
	// Mounted are the paths at which something is mounted when the client starts.
	Mounted []string
	// MinRetry and MaxRetry bound the wait before a failed call is repeated. The wait doubles with each
	// consecutive failure. Zero is [DefaultMinRetry] and [DefaultMaxRetry].
	MinRetry, MaxRetry time.Duration
	// Logger receives what an operator wants to know; nil is none.
	Logger *slog.Logger
}

// Volumes decides for the volumes of one node. Only its owner calls its methods.
type Volumes struct {
	options Options
	now     time.Duration
	wakeAt  time.Duration
	// answers are what the next step learns first.
	answers []func()
	// all are in the order of their keys.
	all []*runner
	// byAlloc are the runners with references of an allocation, in the order of their keys: a node has many
	// volumes, and an allocation few.
	byAlloc map[cluster.AllocID][]*runner
	// plugins are those that run, by id.
	plugins map[cluster.PluginID]Plugin
}

// Plugin is a storage plugin of the node that answers.
type Plugin struct {
	// Stages: the plugin has the capability to stage volumes.
	Stages bool
}

// New continues from records.
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
	v := &Volumes{options: o, plugins: make(map[cluster.PluginID]Plugin), byAlloc: make(map[cluster.AllocID][]*runner)}
	for _, rec := range o.Records {
		v.runner(rec.Volume).restore(rec)
	}
	v.options.Records = nil
	return v, nil
}

// Step handles answers and begins what is due. It returns when it must be called again at the latest,
// or [Never]. An earlier or needless call is harmless.
func (v *Volumes) Step(now time.Duration) (wakeAt time.Duration) {
	v.now, v.wakeAt = now, Never
	answers := v.answers
	v.answers = nil
	for _, take := range answers {
		take()
	}
	for _, r := range v.all {
		r.step()
	}
	v.all = slices.DeleteFunc(v.all, func(r *runner) bool { return r.gone() })
	return v.wakeAt
}

// reached reports whether a time has come. If not, the machine is stepped then.
func (v *Volumes) reached(at time.Duration) bool {
	if at <= v.now {
		return true
	}
	v.wakeAt = min(v.wakeAt, at)
	return false
}

// Mount makes volumes an allocation's. It can be repeated. It reports whether that was news.
func (v *Volumes) Mount(requests []Request) (news bool) {
	for _, q := range requests {
		news = v.runner(q.Volume).want(q) || news
	}
	return news
}

// Adopt makes volumes an allocation's that may have had them when the client started, although their records
// may be lost. What the mount table shows is then undone or used, with the plugin that the claim names. If the
// tasks of the allocation ran, it has claims. It can be repeated.
func (v *Volumes) Adopt(requests []Request, ran bool) {
	for _, q := range requests {
		v.runner(q.Volume).adopt(q, ran)
	}
}

// Owe notes that the servers have a claim of an allocation, which must be released when the allocation leaves.
// What the mount table shows for one without a record is undone before. It can be repeated.
func (v *Volumes) Owe(q Request) {
	r := v.runner(q.Volume)
	if !slices.ContainsFunc(r.refs, func(f *ref) bool { return f.Alloc == q.Alloc }) {
		r.adopt(q, true)
		r.want(q)
	}
	for _, f := range r.refs {
		f.asked = f.asked || f.Alloc == q.Alloc
	}
}

// Retry repeats calls for an allocation that were refused.
func (v *Volumes) Retry(alloc cluster.AllocID) {
	for _, r := range v.byAlloc[alloc] {
		r.retry()
	}
}

// Unmount takes all volumes from an allocation whose tasks have ended. It can be repeated. It reports
// whether that was news.
func (v *Volumes) Unmount(alloc cluster.AllocID) (news bool) {
	for _, r := range v.byAlloc[alloc] {
		news = r.leave(alloc) || news
	}
	return news
}

// Allocs returns the allocations that have volumes, in the order of their ids.
func (v *Volumes) Allocs() []cluster.AllocID {
	return slices.Sorted(maps.Keys(v.byAlloc))
}

// PluginUp notes that a storage plugin answers. Each new process of it is noted.
func (v *Volumes) PluginUp(id cluster.PluginID, p Plugin) {
	v.plugins[id] = p
	for _, r := range v.all {
		if r.plugin == id {
			r.retry()
		}
	}
}

// PluginDown notes that a storage plugin does not answer.
func (v *Volumes) PluginDown(id cluster.PluginID) { delete(v.plugins, id) }

// index notes that a volume has a reference of an allocation.
func (v *Volumes) index(r *runner, alloc cluster.AllocID) {
	of := v.byAlloc[alloc]
	if i, found := slices.BinarySearchFunc(of, r.key, func(o *runner, k cluster.VolumeKey) int { return o.key.Compare(k) }); !found {
		v.byAlloc[alloc] = slices.Insert(of, i, r)
	}
}

// drop removes the references of a volume that are gone.
func (v *Volumes) drop(r *runner, gone func(*ref) bool) {
	for _, f := range r.refs {
		if !gone(f) {
			continue
		}
		r.touch()
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

// runner returns the runner of a volume, and makes it if there is none.
func (v *Volumes) runner(k cluster.VolumeKey) *runner {
	i, found := slices.BinarySearchFunc(v.all, k, func(r *runner, k cluster.VolumeKey) int { return r.key.Compare(k) })
	if !found {
		v.all = slices.Insert(v.all, i, &runner{v: v, key: k})
	}
	return v.all[i]
}

// answer returns a function that queues an answer for the next step.
func answer[T any](v *Volumes, take func(T)) func(T) {
	return func(got T) { v.options.Post(func() { v.answers = append(v.answers, func() { take(got) }) }) }
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
