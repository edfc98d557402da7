package scripted

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Options describe the storage of a machine. Root, Claim and Release are required.
type Options struct {
	// Root is the folder of all volumes.
	Root string
	// Claim and Release are the servers. They call reply at most once, and not before they return.
	Claim   func(q storage.Request, reply func(storage.Claimed, error))
	Release func(q storage.Request, reply func(error))
	// Stages reports whether a plugin has the capability to stage volumes; nil: each has it.
	Stages func(cluster.PluginID) bool
	// Fault returns what happens to a call; nil is nothing. It is called once for each call.
	Fault func(Call) scripted.Fault
}

// Storage is the storage of one machine. Create it with [New].
type Storage struct {
	machine *scripted.Machine
	clock   scripted.Clock
	options Options

	// mounts is the mount table, and claims are the claims that the servers have granted.
	mounts map[string]Mount
	claims map[cluster.ClaimKey]Claim
	// known are the volumes for which there was a claim, by their external ids.
	known map[string]bool
	// lost are the paths of mounts that a fault has unmounted.
	lost map[string]bool
	busy map[string]storage.Holder
	// hungUntil is the end of a hang, by plugin.
	hungUntil map[cluster.PluginID]time.Time
	calls     []Call
	counts    map[Step]int
	flights   []*flight
}

// Mount is a row of the mount table.
type Mount struct {
	Path   string
	Volume cluster.VolumeKey
	Usage  storage.Usage
	// Alloc is the allocation for which the volume is published, or empty where it is staged.
	Alloc   cluster.AllocID
	Plugin  cluster.PluginID
	Options *cluster.MountOptions
	At      time.Time
}

// Claim is a claim that the servers have granted and not released.
type Claim struct {
	Alloc      cluster.AllocID
	Volume     cluster.VolumeKey
	Usage      storage.Usage
	Plugin     cluster.PluginID
	ExternalID string
	// At is when the servers first granted it.
	At time.Time
	// ReleasingAt is when a client last requested the release, or zero.
	ReleasingAt time.Time
	// Kept: the servers have refused the release, because they wait for another event.
	Kept bool
}

// Key names the claim.
func (c *Claim) Key() cluster.ClaimKey { return cluster.ClaimKey{Volume: c.Volume, Alloc: c.Alloc} }

// New returns the storage of a machine with the clock. Nothing is mounted.
func New(m *scripted.Machine, clock scripted.Clock, o Options) *Storage {
	if o.Stages == nil {
		o.Stages = func(cluster.PluginID) bool { return true }
	}
	return &Storage{
		machine: m, clock: clock, options: o, mounts: map[string]Mount{}, claims: map[cluster.ClaimKey]Claim{}, lost: map[string]bool{}, known: map[string]bool{},
		busy: map[string]storage.Holder{}, hungUntil: map[cluster.PluginID]time.Time{}, counts: map[Step]int{},
	}
}

// Root returns the folder of all volumes.
func (s *Storage) Root() string { return s.options.Root }

// Stages reports whether a plugin has the capability to stage volumes.
func (s *Storage) Stages(id cluster.PluginID) bool { return s.options.Stages(id) }

// Mounts returns the mount table, sorted by path.
func (s *Storage) Mounts() []Mount {
	return slices.SortedFunc(maps.Values(s.mounts), func(a, b Mount) int { return cmp.Compare(a.Path, b.Path) })
}

// Claims returns the claims, by volume and allocation.
func (s *Storage) Claims() []Claim {
	return slices.SortedFunc(maps.Values(s.claims), func(a, b Claim) int {
		return cmp.Or(a.Volume.Compare(b.Volume), cmp.Compare(a.Alloc, b.Alloc))
	})
}

// Calls returns all calls without the first n, in their order. The caller must not change them.
func (s *Storage) Calls(n int) []Call { return slices.Clip(s.calls[n:]) }

// Adopt grants a claim to an allocation, stages the volume if the plugin stages volumes, and
// publishes it, as an earlier client did.
func (s *Storage) Adopt(q storage.Request, got storage.Claimed) {
	s.granted(q, got)
	c := Call{Request: q, Plugin: got.Plugin, Options: cmp.Or(q.Options, got.Options)}
	if s.Stages(got.Plugin) {
		c.Path = storage.StagePath(s.options.Root, q.Volume, q.Usage)
		s.mount(c, "")
	}
	c.Path = storage.TargetPath(s.options.Root, q.Alloc, q.Volume, q.Usage)
	s.mount(c, q.Alloc)
}

// Halt removes the mounts and the calls in flight, as a halt of the machine does.
func (s *Storage) Halt() {
	for _, f := range s.flights {
		f.over = true
	}
	s.flights = nil
	clear(s.mounts)
	clear(s.lost)
	clear(s.busy)
	clear(s.hungUntil)
}

// MakeBusy makes a process use a mount, so that it cannot be unmounted until [Storage.Free].
func (s *Storage) MakeBusy(path string, by storage.Holder) { s.busy[path] = by }

// Free ends the use of a mount.
func (s *Storage) Free(path string) { delete(s.busy, path) }

// Busy returns the paths of the busy mounts, sorted.
func (s *Storage) Busy() []string { return slices.Sorted(maps.Keys(s.busy)) }

// Hang makes a plugin hang: calls and probes take effect after the duration.
func (s *Storage) Hang(id cluster.PluginID, d time.Duration) {
	s.hungUntil[id] = s.clock.Now().Add(d)
}

// Lose unmounts a mount, as an operator does by hand.
func (s *Storage) Lose(path string) {
	if _, is := s.mounts[path]; is {
		delete(s.mounts, path)
		s.lost[path] = true
	}
}

// Lost reports whether [Storage.Lose] has unmounted a mount that has not been mounted again.
func (s *Storage) Lost(path string) bool { return s.lost[path] }

func (s *Storage) mount(c Call, alloc cluster.AllocID) {
	if _, is := s.mounts[c.Path]; !is {
		s.mounts[c.Path] = Mount{
			Path: c.Path, Volume: c.Request.Volume, Usage: c.Request.Usage, Alloc: alloc, Plugin: c.Plugin, Options: c.Options, At: s.clock.Now(),
		}
	}
	delete(s.lost, c.Path)
}

func (s *Storage) granted(q storage.Request, got storage.Claimed) {
	key := cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}
	s.known[got.ExternalID] = true
	if _, is := s.claims[key]; !is {
		s.claims[key] = Claim{Alloc: q.Alloc, Volume: q.Volume, Usage: q.Usage, Plugin: got.Plugin, ExternalID: got.ExternalID, At: s.clock.Now()}
	}
}

// living returns the process of a task, if it runs.
func living(m *scripted.Machine, task driver.TaskID) (scripted.Process, bool) {
	for p := range m.EachLiving() {
		if p.Task == task && p.Kind == scripted.TaskProcess {
			return p, true
		}
	}
	return scripted.Process{}, false
}
