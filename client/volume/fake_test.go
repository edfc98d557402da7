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
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

const root = "/volumes"

// node is a machine in virtual time with servers and the double of its storage, which judges each
// call. It continues when the volumes under test are restarted.
type node struct {
	t      *testing.T
	now    time.Duration
	bootID string
	events []*event
	order  int
	disk   map[cluster.VolumeKey]*volume.Record

	machine *drivers.Machine
	storage *scripted.Storage
	// judged counts the calls whose order was checked.
	judged int
	// stages: the plugin has the capability. away: the plugin does not run.
	stages, away bool
	// options are the mount options of all volumes, or nil.
	options *cluster.MountOptions
	// undone contains the values that errors of unpublish and unstage must not contain, in the
	// order of the calls.
	undone []storage.Confidential
	// released counts the ends of claims.
	released map[string]int
	// running are the allocations whose tasks run, placed are the allocations that must run.
	running map[cluster.AllocID]bool
	placed  map[cluster.AllocID][]storage.Request
	// faults are those of the next calls, by name of the call. takes is how long calls take.
	faults map[string][]drivers.Fault
	takes  map[string]time.Duration
	// fullDisk fails all saves, and diskFailed is set then.
	fullDisk, diskFailed bool
	// exclusive: the servers grant one claim at a time.
	exclusive bool
	// registered are the plugin and the external id of the volumes by the servers, and called those of the calls
	// of the plugin.
	registered storage.Claimed
	called     []storage.Call

	volumes *volume.Volumes
	epoch   int
	posts   []func()
	// effects counts started and answered effects. The client dies at number dieAt, or never if it
	// is zero.
	effects, dieAt int
	story          []string
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

// newNode returns a node with allocations that have the volume "data".
func newNode(t *testing.T, allocs ...cluster.AllocID) *node {
	n := &node{
		t: t, now: time.Hour, bootID: "boot-1", disk: map[cluster.VolumeKey]*volume.Record{}, stages: true, released: map[string]int{},
		running: map[cluster.AllocID]bool{}, placed: map[cluster.AllocID][]storage.Request{},
		faults: map[string][]drivers.Fault{}, takes: map[string]time.Duration{}, registered: storage.Claimed{Plugin: "disks", ExternalID: "ext"},
	}
	n.machine = drivers.NewMachine(n)
	n.storage = scripted.New(n.machine, n, scripted.Options{
		Root: root, Claim: n.claim, Release: n.release, Fault: n.fault, Stages: func(cluster.PluginID) bool { return n.stages },
	})
	n.launch()
	n.startClient()
	for _, alloc := range allocs {
		n.mount(alloc, "data")
	}
	n.run(time.Second)
	return n
}

// claim is the answer of the servers to a claim.
func (n *node) claim(q storage.Request, reply func(storage.Claimed, error)) {
	for _, c := range n.storage.Claims() {
		if n.exclusive && c.Volume == q.Volume && c.Alloc != q.Alloc {
			reply(storage.Claimed{}, fmt.Errorf("the claim is %s", claimName(c.Key())))
			return
		}
	}
	reply(storage.Claimed{Plugin: n.registered.Plugin, ExternalID: n.registered.ExternalID + "-" + string(q.Volume.ID), Options: n.options, Secrets: map[string]string{"key": "secret"}}, nil)
}

// release is the answer of the servers to the end of a claim.
func (n *node) release(q storage.Request, reply func(error)) {
	for _, c := range n.storage.Claims() {
		if c.Volume == q.Volume && c.Alloc == q.Alloc {
			n.released[claimName(c.Key())]++
		}
	}
	reply(nil)
}

func claimName(k cluster.ClaimKey) string { return string(k.Alloc) + " " + string(k.Volume.ID) }

func (n *node) fault(c scripted.Call) (f drivers.Fault) {
	name := c.Step.String()
	if all := n.faults[name]; len(all) > 0 {
		f, n.faults[name] = all[0], all[1:]
	}
	f.Delay = n.takes[name]
	return f
}

// fail makes the next call of a name fail without an effect.
func (n *node) fail(name string, err error) {
	n.faults[name] = append(n.faults[name], drivers.Fault{Action: drivers.Fail, Err: err})
}

// launch starts the plugin's process.
func (n *node) launch() {
	_, err := n.machine.Spawn(drivers.Process{Task: "plugin"})
	must.NoError(n.t, err)
}

// startClient starts the step machine under test with the records on the disk, as after a crash.
func (n *node) startClient() {
	n.epoch++
	n.posts = nil
	epoch := n.epoch
	o := volume.Options{
		Shell: &shell{n, epoch}, BootID: n.bootID, Root: root,
		Post: func(f func()) {
			if epoch == n.epoch {
				n.posts = append(n.posts, f)
			}
		},
	}
	for _, key := range slices.SortedFunc(maps.Keys(n.disk), cluster.VolumeKey.Compare) {
		o.Records = append(o.Records, n.disk[key])
	}
	for _, m := range n.storage.Mounts() {
		o.Mounted = append(o.Mounted, m.Path)
	}
	v, err := volume.New(o)
	must.NoError(n.t, err)
	n.volumes = v
	if !n.away {
		v.PluginUp("disks", volume.Plugin{Stages: n.stages})
	}
	n.post()
}

// post posts to the machine what the core of a client would: which allocations need volumes, and which
// have ended.
func (n *node) post() {
	for _, id := range slices.Sorted(maps.Keys(n.placed)) {
		n.volumes.Adopt(n.placed[id], n.running[id])
		if n.running[id] {
			n.volumes.Confirm(id)
		} else {
			n.volumes.Mount(n.placed[id])
		}
	}
	for _, id := range n.volumes.Allocs() {
		if n.placed[id] == nil {
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
	n.machine.Halt()
	n.storage.Halt()
	n.machine.Boot()
	if !n.away {
		n.launch()
	}
	clear(n.running)
	n.bootID += "'"
	n.startClient()
}

// setAway ends the plugin's process. If it is not to be away, it starts again.
func (n *node) setAway(away bool) {
	n.away = away
	for _, p := range n.machine.Living() {
		n.machine.Signal(p.Identity, drivers.SIGKILL, drivers.ByFault)
	}
	n.volumes.PluginDown("disks")
	if !away {
		n.launch()
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
		n.placed[alloc] = append(n.placed[alloc], request(alloc, id))
	}
	n.volumes.Mount(n.placed[alloc])
}

// request is the request of an allocation. Those of c and d have other mount options than the others.
func request(alloc cluster.AllocID, id string) storage.Request {
	q := storage.Request{Alloc: alloc, Volume: key(id), Usage: usage}
	if alloc == "c" || alloc == "d" {
		q.Options = &cluster.MountOptions{Flags: []string{"noatime"}}
	}
	return q
}

func key(id string) cluster.VolumeKey {
	return cluster.VolumeKey{Namespace: "default", ID: cluster.VolumeID(id)}
}

func target(alloc cluster.AllocID, id string) string {
	return storage.TargetPath(root, alloc, key(id), usage)
}

var usage = storage.Usage{VolumeCapability: cluster.VolumeCapability{Attachment: cluster.AttachFileSystem, Access: cluster.MultiNodeMultiWriter}}

// stop ends the tasks of an allocation, which leaves.
func (n *node) stop(alloc cluster.AllocID) {
	delete(n.running, alloc)
	delete(n.placed, alloc)
	n.volumes.Unmount(alloc)
}

// leaves ends the tasks of an allocation, and lets time pass.
func (n *node) leaves(alloc cluster.AllocID, during time.Duration) {
	n.stop(alloc)
	n.run(during)
}

// restarts kills the client. The next one runs for a time.
func (n *node) restarts(during time.Duration) {
	n.crash()
	n.run(during)
}

// end ends the last allocations of the node.
func (n *node) end(allocs ...cluster.AllocID) {
	n.t.Helper()
	for _, alloc := range allocs {
		n.stop(alloc)
	}
	n.run(time.Minute)
	n.clean()
}

// Now implements the clock of the doubles.
func (n *node) Now() time.Time { return time.Unix(0, 0).Add(n.now) }

// After implements the clock of the doubles.
func (n *node) After(d time.Duration, do func()) (cancel func()) {
	n.order++
	e := &event{n.now + max(0, d), n.order, do}
	n.events = append(n.events, e)
	slices.SortFunc(n.events, func(a, b *event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	return func() { e.do = func() {} }
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
		for _, c := range n.storage.Calls(n.judged) {
			must.SliceEmpty(n.t, c.Wrong, must.Sprint(c.Step, " of ", c.Request.Volume, ": ", c.Wrong))
			n.judged++
		}
		for _, id := range slices.Sorted(maps.Keys(n.placed)) {
			if !n.running[id] && n.volumes.Status(id).Ready {
				n.running[id] = true
				for _, q := range n.placed[id] {
					must.True(n.t, n.mounted(storage.TargetPath(root, id, q.Volume, q.Usage)), must.Sprint(id, " runs without ", q.Volume))
				}
				n.log("%s runs", id)
			}
		}
		if len(n.posts) > 0 || n.dieAt > 0 && n.effects >= n.dieAt {
			continue
		}
		n.visitAll(wake)
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

// visitAll checks that the last step has visited all volumes that had something to do, and that the
// number of those that need the plugin is right.
func (n *node) visitAll(wake time.Duration) {
	for _, kind := range []cluster.PluginType{cluster.PluginNode, cluster.PluginController, cluster.PluginMonolith} {
		must.EqOp(n.t, len(slices.Collect(n.volumes.Serving("disks", kind))), n.volumes.CountServing("disks", kind))
	}
	begun := n.effects
	n.volumes.MarkAll()
	must.GreaterEq(n.t, wake, n.volumes.Step(n.now), must.Sprint("a time that the machine has missed, at ", n.now))
	must.EqOp(n.t, begun, n.effects, must.Sprint("an effect that the machine has missed, at ", n.now))
}

func last(lines []string, count int) []string { return lines[max(0, len(lines)-count):] }

// shell acts for one machine under test. Each effect is a point at which the client may die, when
// it begins and when it is answered.
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
	s.node.After(d, func() {
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

// lives reports whether the client waits for answers.
func (s *shell) lives() bool { return s.epoch == s.node.epoch }

// answer adds a call to the story, and passes its answer on.
func (s *shell) answer(name any, k cluster.VolumeKey, err error, reply func()) {
	if err != nil {
		s.node.log("%v %s: %v", name, k.ID, err)
	} else {
		s.node.log("%v %s", name, k.ID)
	}
	if s.effect() {
		reply()
	}
}

func (s *shell) Claim(q storage.Request, reply func(storage.Claimed, error)) {
	if !s.effect() {
		return
	}
	rec := s.node.disk[q.Volume]
	must.NotNil(s.node.t, rec, must.Sprint("a claim without a record"))
	must.True(s.node.t, slices.ContainsFunc(rec.Refs, func(f volume.RefRecord) bool { return f.Alloc == q.Alloc }))
	s.node.storage.Claim(q, s.lives, func(c storage.Claimed, err error) {
		s.answer(scripted.Claiming, q.Volume, err, func() { reply(c, err) })
	})
}

func (s *shell) Release(q storage.Request, reply func(error)) {
	if s.effect() {
		s.node.storage.Release(q, s.lives, func(err error) { s.answer(scripted.Releasing, q.Volume, err, func() { reply(err) }) })
	}
}

// Call judges what the double does not see: the record that is written before, the secrets, and the
// tasks.
func (s *shell) Call(c storage.Call, reply func(storage.Result)) {
	n, q := s.node, c.Request
	if !s.effect() {
		return
	}
	n.called = append(n.called, c)
	rec := n.disk[q.Volume]
	must.NotNil(n.t, rec, must.Sprint(c.Verb, " without a record"))
	step := scripted.StepOf(c.Verb)
	switch c.Verb {
	case storage.Stage:
		must.EqOp(n.t, "secret", c.Claimed.Secrets["key"])
	case storage.Publish:
		must.EqOp(n.t, n.stages, c.Staged)
	case storage.Unpublish:
		must.False(n.t, n.running[q.Alloc], must.Sprint(q.Alloc, " runs and loses its volume"))
	case storage.Unstage:
		written := slices.ContainsFunc(rec.Stages, func(s volume.StageRecord) bool { return s.Phase == volume.Unstaging })
		must.True(n.t, written || n.diskFailed, must.Sprint("unstaged, and by the record it is staged"))
	}
	if step >= scripted.Unpublishing {
		n.undone = append(n.undone, c.Confidential)
	}
	n.storage.Do("plugin", c, s.lives, func(r storage.Result) { s.answer(step, q.Volume, r.Err, func() { reply(r) }) })
}

// mounted reports whether something is mounted at a path.
func (n *node) mounted(path string) bool {
	return slices.ContainsFunc(n.storage.Mounts(), func(m scripted.Mount) bool { return m.Path == path })
}

// clean checks that nothing is left on the node, nor at the servers.
func (n *node) clean() {
	must.SliceEmpty(n.t, n.storage.Mounts())
	must.SliceEmpty(n.t, n.storage.Claims())
	must.MapEmpty(n.t, n.disk)
	must.SliceEmpty(n.t, n.volumes.Allocs())
	must.SliceEmpty(n.t, slices.Collect(n.volumes.Serving("disks", cluster.PluginMonolith)))
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
