//race:skip one goroutine
package scripted_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

var (
	usage  = storage.Usage{VolumeCapability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}}
	data   = cluster.VolumeKey{Namespace: "default", ID: "data"}
	target = storage.TargetPath("/v", "a", data, usage)
	staged = storage.StagePath("/v", data, usage)
)

// clock is a clock of one goroutine.
type clock struct {
	now    time.Time
	events []*event
}

type event struct {
	at time.Time
	do func()
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) After(d time.Duration, do func()) (cancel func()) {
	e := &event{c.now.Add(max(0, d)), do}
	c.events = append(c.events, e)
	return func() { e.do = func() {} }
}

// sleep lets time pass.
func (c *clock) sleep(d time.Duration) {
	for end := c.now.Add(d); ; {
		slices.SortStableFunc(c.events, func(a, b *event) int { return a.at.Compare(b.at) })
		if len(c.events) == 0 || c.events[0].at.After(end) {
			c.now = end
			return
		}
		first := c.events[0]
		c.now, c.events = first.at, c.events[1:]
		first.do()
	}
}

// fixture is a machine with a storage plugin, whose task has the start "plugin".
type fixture struct {
	*clock
	t       *testing.T
	machine *drivers.Machine
	storage *scripted.Storage
	fault   drivers.Fault
	stages  bool
	answers []error
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, clock: &clock{now: time.Unix(0, 0)}, stages: true}
	f.machine = drivers.NewMachine(f.clock)
	f.storage = scripted.New(f.machine, f.clock, scripted.Options{
		Root: "/v",
		Claim: func(_ storage.Request, reply func(storage.Claimed, error)) {
			reply(storage.Claimed{Plugin: "disks", ExternalID: "ext"}, nil)
		},
		Release: func(_ storage.Request, reply func(error)) { reply(nil) },
		Stages:  func(cluster.PluginID) bool { return f.stages },
		Fault:   func(scripted.Call) drivers.Fault { return f.fault },
	})
	f.start()
	f.sleep(time.Second)
	return f
}

// start starts the plugin's task.
func (f *fixture) start() {
	_, err := f.machine.Spawn(drivers.Process{Task: "plugin"})
	must.NoError(f.t, err)
}

func request(alloc cluster.AllocID) storage.Request {
	return storage.Request{Alloc: alloc, Volume: data, Usage: usage}
}

func waits() bool { return true }

// do makes calls by name, one after the other, for the allocation "a" or "b".
func (f *fixture) do(alloc cluster.AllocID, names ...string) {
	for _, name := range names {
		f.begin(alloc, name, waits)
		f.sleep(time.Second)
	}
}

func (f *fixture) begin(alloc cluster.AllocID, name string, waiting func() bool) {
	answer := func(err error) { f.answers = append(f.answers, err) }
	c := storage.Call{Volume: data, Plugin: "disks", ExternalID: "ext", Request: request(alloc)}
	switch name {
	case "claim":
		f.storage.Claim(c.Request, waiting, func(_ storage.Claimed, err error) { answer(err) })
		return
	case "release":
		f.storage.Release(c.Request, waiting, answer)
		return
	case "stage":
		c.Verb = storage.Stage
	case "publish with options":
		c.Verb, c.Request.Options = storage.Publish, &cluster.MountOptions{FSType: "ext4"}
	case "publish":
		c.Verb = storage.Publish
	case "unpublish":
		c.Verb = storage.Unpublish
	case "unstage":
		c.Verb, c.Request.Alloc = storage.Unstage, ""
	}
	f.storage.Do("plugin", c, waiting, func(r storage.Result) { answer(r.Err) })
}

func (f *fixture) wrong() (all []string) {
	for _, c := range f.storage.Calls(0) {
		all = append(all, c.Wrong...)
	}
	return all
}

// Calls in order change the tables, and are not wrong. Each can be repeated.
func TestStorage_order(t *testing.T) {
	f := newFixture(t)
	f.do("a", "claim", "claim", "stage", "stage", "publish", "publish")
	must.Len(t, 2, f.storage.Mounts())
	must.Len(t, 1, f.storage.Claims())
	f.do("a", "unpublish", "unpublish", "unstage", "unstage", "release", "release")
	must.SliceEmpty(t, f.storage.Mounts())
	must.SliceEmpty(t, f.storage.Claims())
	must.SliceEmpty(t, f.wrong())
	for _, err := range f.answers {
		must.NoError(t, err)
	}
}

// Each call that is out of order is recorded.
func TestStorage_wrong(t *testing.T) {
	for _, c := range []struct {
		calls []string
		wrong string
		do    func(f *fixture)
	}{
		{[]string{"stage"}, "the servers have given no claim", nil},
		{[]string{"claim", "publish"}, "the volume is not staged", nil},
		{[]string{"claim", "stage", "publish", "unstage"}, "the volume is published at " + target, nil},
		{[]string{"claim", "stage", "publish", "release"}, "the volume is published at " + target, nil},
		{[]string{"claim", "stage", "release"}, "the volume is staged at " + staged + ", and no other allocation has a claim", nil},
		{[]string{"claim", "stage", "publish with options"}, "the volume is staged with other mount options", nil},
		{[]string{"claim", "stage"}, "the plugin does not stage", func(f *fixture) { f.stages = false }},
	} {
		f := newFixture(t)
		if c.do != nil {
			c.do(f)
		}
		f.do("a", c.calls...)
		must.SliceContains(t, f.wrong(), c.wrong)
	}
}

// A client has one call in flight for a volume. A call of a later client fails while the call of an
// earlier client is in flight, and the client must retry it.
func TestStorage_oneCallAtATime(t *testing.T) {
	f := newFixture(t)
	f.do("a", "claim", "stage")
	waiting := true
	f.fault.Delay = time.Minute
	f.begin("a", "publish", func() bool { return waiting })
	f.do("a", "publish")
	must.Len(t, 1, f.wrong())
	must.ErrorContains(t, f.answers[2], "aborted")
	waiting, f.fault.Delay = false, 0
	f.do("a", "publish")
	must.Len(t, 1, f.wrong())
	must.ErrorContains(t, f.answers[3], "aborted")
	f.sleep(time.Minute)
	f.do("a", "publish")
	must.NoError(t, f.answers[5])
}

// Each fault decides whether a call is answered and whether it takes effect.
func TestStorage_faults(t *testing.T) {
	no := storage.Errorf(storage.Refused, "no")
	for _, c := range []struct {
		action   drivers.Action
		answered bool
		err      error
		mounts   int
		lives    bool
	}{
		{drivers.Answer, true, nil, 2, true},
		{drivers.Fail, true, no, 1, true},
		{drivers.FailAfter, true, no, 2, true},
		{drivers.Hang, false, nil, 1, true},
		{drivers.HangAfter, false, nil, 2, true},
		{drivers.Crash, true, errors.New("the storage plugin has died"), 1, false},
		{drivers.CrashAfter, true, errors.New("the storage plugin has died"), 2, false},
	} {
		f := newFixture(t)
		f.do("a", "claim", "stage")
		f.fault = drivers.Fault{Action: c.action, Err: no}
		f.do("a", "publish")
		must.EqOp(t, c.answered, len(f.answers) == 3)
		if c.answered && c.err != nil {
			must.EqError(t, f.answers[2], c.err.Error())
		}
		must.Len(t, c.mounts, f.storage.Mounts(), must.Sprint(c.action))
		f.fault = drivers.Fault{}
		f.answers = nil
		f.storage.Probe("plugin", "disks", func(err error) { f.answers = append(f.answers, err) })
		f.sleep(time.Second)
		must.EqOp(t, c.lives, f.answers[0] == nil)
	}
}

// A mount that a process uses cannot be unmounted. A halt of the machine removes it.
func TestStorage_busyAndHalt(t *testing.T) {
	f := newFixture(t)
	f.do("a", "claim", "stage", "publish")
	f.storage.MakeBusy(target, storage.Holder{PID: 7, Command: "tail"})
	f.do("a", "unpublish")
	must.ErrorContains(t, f.answers[3], "busy")
	must.Len(t, 2, f.storage.Mounts())
	f.machine.Halt()
	f.storage.Halt()
	f.machine.Boot()
	must.SliceEmpty(t, f.storage.Mounts())
	must.Len(t, 1, f.storage.Claims())
	f.do("a", "stage")
	must.ErrorContains(t, f.answers[4], "connection refused")
}
