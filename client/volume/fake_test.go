package volume_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const root = "/volumes"

// node is a machine in virtual time with a storage plugin and servers. It survives the machine under
// test, and judges each call by its own mount table.
type node struct {
	t      *testing.T
	now    time.Duration
	bootID string
	events []event
	order  int
	disk   map[cluster.VolumeKey]*volume.Record

	// stages: the plugin has the capability. away: the plugin does not run.
	stages, away bool
	// staged and published are the mount table, by path.
	staged, published map[string]bool
	// stagedWith are the options of stages, by path.
	stagedWith map[string]*cluster.MountOptions
	// options are those of all volumes, or nil.
	options *cluster.MountOptions
	// undone is what the errors of calls that undid must not repeat, in the order of the calls.
	undone []volume.Confidential
	// claims are those of the servers, and taken counts claims of each allocation, released their ends.
	claims   map[string]bool
	released map[string]int
	// running are the allocations whose tasks run, wanted those that must run.
	running map[cluster.AllocID]bool
	wanted  map[cluster.AllocID][]volume.Request
	// inFlight are the calls of plugin and servers, by volume, with the number of the machine.
	inFlight map[cluster.VolumeKey]int
	// busy are mounts that processes keep. errors are those of the next calls, by name of the call: the
	// second part of an answer is whether the call takes effect.
	busy   map[string]volume.Holder
	errors map[string][]failure
	// takes is how long calls take, by name.
	takes map[string]time.Duration
	// fullDisk fails all saves, and diskFailed is set then.
	fullDisk, diskFailed bool
	// exclusive: the servers give one claim at a time.
	exclusive bool

	volumes *volume.Volumes
	epoch   int
	posts   []func()
	// effects counts begun and answered effects; the client dies at number dieAt, or never if it is zero.
	effects, dieAt int
	story          []string
}

type failure struct {
	err    error
	effect bool
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

func newNode(t *testing.T) *node {
	n := &node{
		t: t, now: time.Hour, bootID: "boot-1", disk: map[cluster.VolumeKey]*volume.Record{}, stages: true,
		staged: map[string]bool{}, published: map[string]bool{}, stagedWith: map[string]*cluster.MountOptions{}, claims: map[string]bool{}, released: map[string]int{},
		running: map[cluster.AllocID]bool{}, wanted: map[cluster.AllocID][]volume.Request{}, inFlight: map[cluster.VolumeKey]int{},
		busy: map[string]volume.Holder{}, errors: map[string][]failure{}, takes: map[string]time.Duration{},
	}
	n.startClient()
	return n
}

// startClient starts the machine under test over what is on the disk, as after a crash.
func (n *node) startClient() {
	n.epoch++
	n.posts = nil
	var records []*volume.Record
	for _, key := range slices.SortedFunc(maps.Keys(n.disk), cluster.VolumeKey.Compare) {
		records = append(records, n.disk[key])
	}
	epoch := n.epoch
	v, err := volume.New(volume.Options{
		Shell: &shell{n, epoch}, BootID: n.bootID, Root: root, Records: records, Mounted: slices.Concat(slices.Sorted(maps.Keys(n.published)), slices.Sorted(maps.Keys(n.staged))),
		Post: func(f func()) {
			if epoch == n.epoch {
				n.posts = append(n.posts, f)
			}
		},
	})
	must.NoError(n.t, err)
	n.volumes = v
	if !n.away {
		v.PluginUp("disks", volume.Plugin{Stages: n.stages})
	}
	n.tell()
}

// tell tells the machine what the core of a client would: which allocations want volumes, and which
// have ended.
func (n *node) tell() {
	for _, id := range slices.Sorted(maps.Keys(n.wanted)) {
		n.volumes.Adopt(n.wanted[id], n.running[id])
		n.volumes.Mount(n.wanted[id])
	}
	for _, id := range n.volumes.Allocs() {
		if n.wanted[id] == nil {
			n.volumes.Unmount(id)
		}
	}
}

func (n *node) crash() {
	n.log("the client is killed")
	n.startClient()
}

// reboot restarts the machine: nothing is mounted.
func (n *node) reboot() {
	n.log("the machine restarts")
	n.staged, n.published, n.running = map[string]bool{}, map[string]bool{}, map[cluster.AllocID]bool{}
	n.events, n.inFlight = nil, map[cluster.VolumeKey]int{}
	n.bootID += "'"
	n.startClient()
}

func (n *node) setAway(away bool) {
	n.away = away
	if away {
		n.volumes.PluginDown("disks")
	} else {
		n.volumes.PluginUp("disks", volume.Plugin{Stages: n.stages})
	}
	n.log("the plugin is away: %v", away)
}

func (n *node) log(format string, args ...any) {
	n.story = append(n.story, fmt.Sprintf("%8s  ", n.now-time.Hour)+fmt.Sprintf(format, args...))
}

// mount makes volumes an allocation's.
func (n *node) mount(alloc cluster.AllocID, ids ...string) {
	for _, id := range ids {
		n.wanted[alloc] = append(n.wanted[alloc], request(alloc, id))
	}
	n.volumes.Mount(n.wanted[alloc])
}

// request is the wish of an allocation. Those of c and d have other mount options than the others.
func request(alloc cluster.AllocID, id string) volume.Request {
	q := volume.Request{Alloc: alloc, Volume: key(id), Usage: usage}
	if alloc == "c" || alloc == "d" {
		q.Options = &cluster.MountOptions{Flags: []string{"noatime"}}
	}
	return q
}

func key(id string) cluster.VolumeKey {
	return cluster.VolumeKey{Namespace: "default", ID: cluster.VolumeID(id)}
}

func target(alloc cluster.AllocID, id string) string {
	return volume.TargetPath(root, alloc, key(id), usage)
}

var usage = volume.Usage{VolumeCapability: cluster.VolumeCapability{Attachment: cluster.AttachFileSystem, Access: cluster.MultiNodeMultiWriter}}

// stop ends the tasks of an allocation, which leaves.
func (n *node) stop(alloc cluster.AllocID) {
	delete(n.running, alloc)
	delete(n.wanted, alloc)
	n.volumes.Unmount(alloc)
}

func (n *node) after(d time.Duration, do func()) {
	n.order++
	n.events = append(n.events, event{n.now + d, n.order, do})
	slices.SortFunc(n.events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
}

// run lets time pass.
func (n *node) run(d time.Duration) {
	end := n.now + d
	for steps := 0; ; steps++ {
		must.Less(n.t, 100_000, steps, must.Sprint("the machine does not come to rest: ", strings.Join(last(n.story, 30), "\n")))
		if n.dieAt > 0 && n.effects >= n.dieAt {
			n.dieAt = 0
			n.crash()
		}
		posts := n.posts
		n.posts = nil
		for _, post := range posts {
			post()
		}
		wake := n.volumes.Step(n.now)
		for _, id := range slices.Sorted(maps.Keys(n.wanted)) {
			if !n.running[id] && n.volumes.Status(id).Ready {
				n.running[id] = true
				for _, q := range n.wanted[id] {
					must.True(n.t, n.published[volume.TargetPath(root, id, q.Volume, q.Usage)], must.Sprint(id, " runs without ", q.Volume))
				}
				n.log("%s runs", id)
			}
		}
		if len(n.posts) > 0 || n.dieAt > 0 && n.effects >= n.dieAt {
			continue
		}
		next := min(wake, end)
		if len(n.events) > 0 {
			next = min(next, n.events[0].at)
		}
		n.now = max(n.now, next)
		if len(n.events) > 0 && n.events[0].at <= n.now {
			e := n.events[0]
			n.events = n.events[1:]
			e.do()
			continue
		}
		if n.now >= end && wake > n.now {
			return
		}
	}
}

func last(lines []string, count int) []string { return lines[max(0, len(lines)-count):] }

// shell acts for one machine under test. Each effect is a point at which the client may die, when it
// begins and when it is answered.
type shell struct {
	node  *node
	epoch int
}

func (s *shell) effect() bool {
	n := s.node
	if s.epoch != n.epoch || n.dieAt > 0 && n.effects >= n.dieAt {
		return false
	}
	n.effects++
	return true
}

func (s *shell) later(d time.Duration, do func() (answer func())) {
	if !s.effect() {
		return
	}
	s.node.after(d, func() {
		if answer := do(); answer != nil && s.effect() {
			answer()
		}
	})
}

func (s *shell) SaveVolume(r *volume.Record, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		if s.node.fullDisk {
			s.node.diskFailed = true
			return func() { reply(errors.New("no space left on device")) }
		}
		if s.epoch == s.node.epoch {
			s.node.disk[r.Volume] = r
		}
		return func() { reply(nil) }
	})
}

func (s *shell) DeleteVolume(k cluster.VolumeKey, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		if s.epoch == s.node.epoch {
			delete(s.node.disk, k)
		}
		return func() { reply(nil) }
	})
}

// call makes a call that may fail. Two calls of one machine for one volume are a fault. A call beside
// one that an earlier client has left is answered as plugins do.
func (s *shell) call(name string, k cluster.VolumeKey, effect func() error, reply func(error)) {
	n := s.node
	if !s.effect() {
		return
	}
	must.NotEqOp(n.t, s.epoch, n.inFlight[k], must.Sprint("two calls for ", k, " at a time"))
	aborted := n.inFlight[k] != 0
	if !aborted {
		n.inFlight[k] = s.epoch
	}
	n.after(max(time.Millisecond, n.takes[name]), func() {
		var err error
		if aborted {
			err = errors.New("another call is in flight")
		} else {
			delete(n.inFlight, k)
			var planned failure
			if all := n.errors[name]; len(all) > 0 {
				planned, n.errors[name] = all[0], all[1:]
			}
			if planned.err == nil || planned.effect {
				err = effect()
			}
			err = cmp.Or(planned.err, err)
		}
		if err != nil {
			n.log("%s %s: %v", name, k.ID, err)
		} else {
			n.log("%s %s", name, k.ID)
		}
		if s.effect() {
			reply(err)
		}
	})
}

func claimName(q volume.Request) string { return string(q.Alloc) + " " + string(q.Volume.ID) }

func (s *shell) Claim(q volume.Request, reply func(volume.Claimed, error)) {
	n := s.node
	s.call("claim", q.Volume, func() error {
		rec := n.disk[q.Volume]
		must.NotNil(n.t, rec, must.Sprint("a claim without a record"))
		must.True(n.t, slices.ContainsFunc(rec.Refs, func(f volume.RefRecord) bool { return f.Alloc == q.Alloc }))
		if n.exclusive && !n.claims[claimName(q)] {
			for name := range n.claims {
				if strings.HasSuffix(name, " "+string(q.Volume.ID)) {
					return fmt.Errorf("the claim is %s", name)
				}
			}
		}
		n.claims[claimName(q)] = true
		return nil
	}, func(err error) {
		reply(volume.Claimed{Plugin: "disks", ExternalID: "ext-" + string(q.Volume.ID), Options: n.options, Secrets: map[string]string{"key": "secret"}}, err)
	})
}

func (s *shell) Release(q volume.Request, reply func(error)) {
	n := s.node
	s.call("release", q.Volume, func() error {
		must.False(n.t, n.published[volume.TargetPath(root, q.Alloc, q.Volume, q.Usage)], must.Sprint("released while published: ", q))
		others := false
		for name := range n.claims {
			others = others || name != claimName(q) && strings.HasSuffix(name, " "+string(q.Volume.ID))
		}
		if !others {
			must.False(n.t, n.staged[volume.StagePath(root, q.Volume, q.Usage)], must.Sprint("released while staged: ", q))
		}
		if n.claims[claimName(q)] {
			n.released[claimName(q)]++
		}
		delete(n.claims, claimName(q))
		return nil
	}, reply)
}

func (s *shell) Call(c volume.Call, reply func(volume.Result)) {
	n := s.node
	q := c.Request
	stage, target := volume.StagePath(root, q.Volume, q.Usage), volume.TargetPath(root, q.Alloc, q.Volume, q.Usage)
	path := target
	if c.Verb == volume.Stage || c.Verb == volume.Unstage {
		path = stage
	}
	name := [...]string{"stage", "publish", "unpublish", "unstage"}[c.Verb]
	var holders []volume.Holder
	s.call(name, q.Volume, func() error {
		if n.away {
			return errors.New("the plugin is away")
		}
		must.EqOp(n.t, "ext-"+string(q.Volume.ID), c.ExternalID)
		rec := n.disk[q.Volume]
		must.NotNil(n.t, rec, must.Sprint(name, " without a record"))
		if c.Verb == volume.Unpublish || c.Verb == volume.Unstage {
			n.undone = append(n.undone, c.Confidential)
		}
		switch c.Verb {
		case volume.Stage:
			must.True(n.t, n.stages, must.Sprint("the plugin does not stage"))
			must.True(n.t, n.claims[claimName(q)], must.Sprint("staged without a claim"))
			must.EqOp(n.t, "secret", c.Claimed.Secrets["key"])
			if n.staged[stage] && !n.stagedWith[stage].Equal(q.Options) {
				must.False(n.t, n.anyPublished(q), must.Sprint("staged with other options while it is published"))
			}
			n.staged[stage], n.stagedWith[stage] = true, q.Options
		case volume.Publish:
			must.True(n.t, n.claims[claimName(q)], must.Sprint("published without a claim"))
			must.EqOp(n.t, n.stages, c.Staged)
			if n.stages && !n.staged[stage] {
				return volume.Errorf(volume.NotStaged, "the volume is not staged")
			}
			must.True(n.t, !n.stages || n.stagedWith[stage].Equal(q.Options), must.Sprint("published with other options than staged"))
			n.published[target] = true
		case volume.Unpublish:
			must.False(n.t, n.running[q.Alloc], must.Sprint(q.Alloc, " runs and loses its volume"))
			if h, busy := n.busy[path]; busy && n.published[target] {
				holders = append(holders, h)
				return errors.New("device or resource busy")
			}
			delete(n.published, target)
		case volume.Unstage:
			must.False(n.t, n.anyPublished(q), must.Sprint("unstaged while published"))
			written := slices.ContainsFunc(rec.Stages, func(s volume.StageRecord) bool { return s.Phase == volume.Unstaging })
			must.True(n.t, written || n.diskFailed, must.Sprint("unstaged, and the record says that it is staged"))
			delete(n.staged, stage)
		}
		return nil
	}, func(err error) { reply(volume.Result{Err: err, Holders: holders}) })
}

// anyPublished reports whether a usage of a volume is published for any allocation.
func (n *node) anyPublished(q volume.Request) bool {
	return slices.ContainsFunc([]cluster.AllocID{"a", "b", "c", "d"}, func(alloc cluster.AllocID) bool {
		return n.published[volume.TargetPath(root, alloc, q.Volume, q.Usage)]
	})
}

// clean checks that nothing is left on the node, nor at the servers.
func (n *node) clean() {
	must.MapEmpty(n.t, n.published)
	must.MapEmpty(n.t, n.staged)
	must.MapEmpty(n.t, n.claims)
	must.MapEmpty(n.t, n.disk)
	must.SliceEmpty(n.t, n.volumes.Allocs())
	must.SliceEmpty(n.t, n.volumes.Serving("disks"))
}

// words are the lines of the story from a line on, without times.
func (n *node) words() []string {
	var words []string
	for _, line := range n.story {
		_, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
		words = append(words, text)
	}
	return words
}
