package scripted

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Step is the kind of a call to a plugin or to the servers.
type Step uint8

// The steps, in the order of the calls for a volume.
const (
	Claiming Step = iota
	Staging
	Publishing
	Unpublishing
	Unstaging
	Releasing
)

// String returns "claim", "stage", "publish", "unpublish", "unstage" or "release".
func (s Step) String() string {
	return [...]string{"claim", "stage", "publish", "unpublish", "unstage", "release"}[min(s, Releasing)]
}

// StepOf returns the step of a call to a plugin.
func StepOf(v storage.Verb) Step {
	return [...]Step{Staging, Publishing, Unpublishing, Unstaging}[v]
}

// Call is one call to a plugin or to the servers.
type Call struct {
	At   time.Time
	Step Step
	// Request is the reference that the call is for. For Unstaging it has no allocation.
	Request storage.Request
	// Plugin, ExternalID, Path and Options are empty for calls to the servers. Options are the
	// mount options of a call that mounts, or nil.
	Plugin     cluster.PluginID
	ExternalID string
	Path       string
	Options    *cluster.MountOptions
	// Count is the number of the call among all calls of its step, from 1.
	Count int
	// Wrong states what is out of order with the call, or is nil.
	Wrong []string
}

// callTime is the shortest time of a call.
const callTime = 2 * time.Millisecond

var (
	errGone    = errors.New("the storage plugin does not answer: connection refused")
	errDied    = errors.New("the storage plugin has died")
	errAborted = errors.New("aborted: another call for the volume is in flight")
	errFault   = errors.New("a fault of the script")
)

// flight is a call that has no answer yet.
type flight struct {
	call Call
	// process is the process of the plugin. It is not set for calls to the servers.
	process scripted.Identity
	// waiting reports whether its client still waits for the answer.
	waiting func() bool
	over    bool
	end     func(error)
}

// begin records a call, and checks its order.
func (s *Storage) begin(c Call, wrong []string) Call {
	s.counts[c.Step]++
	c.At, c.Count = s.clock.Now(), s.counts[c.Step]
	for _, f := range s.flights {
		if f.call.Request.Volume == c.Request.Volume && f.waiting() {
			wrong = append(wrong, fmt.Sprintf("the client waits for the answer to %s, which it has sent at %s", f.call.Step, f.call.At.Format(time.TimeOnly)))
		}
	}
	c.Wrong = wrong
	s.calls = append(s.calls, c)
	return c
}

// InFlight reports whether a call for a volume has no answer yet. It may take effect although its
// client no longer waits for it.
func (s *Storage) InFlight(k cluster.VolumeKey) bool {
	return slices.ContainsFunc(s.flights, func(f *flight) bool { return f.call.Request.Volume == k })
}

// land answers a call, unless it has an answer.
func (s *Storage) land(f *flight, err error) {
	if f.over {
		return
	}
	f.over = true
	s.flights = slices.DeleteFunc(s.flights, func(other *flight) bool { return other == f })
	s.clock.After(0, func() { f.end(err) })
}

// play executes the effect of a call with a fault before or after it. effect gets the function that
// answers.
func (s *Storage) play(f *flight, fault scripted.Fault, effect func(answer func(error)), crash func()) {
	s.clock.After(callTime+fault.Delay, func() {
		if f.over {
			return
		}
		fault.Play(
			func(answer func(func())) {
				effect(func(err error) { answer(func() { s.land(f, err) }) })
			},
			func(reply func()) { reply() }, func() { s.land(f, cmp.Or(fault.Err, errFault)) }, crash)
	})
}

func (s *Storage) fault(c Call) scripted.Fault {
	var f scripted.Fault
	if s.options.Fault != nil {
		f = s.options.Fault(c)
	}
	if until := s.hungUntil[c.Plugin]; until.After(s.clock.Now()) {
		f.Delay = max(f.Delay, until.Sub(s.clock.Now()))
	}
	return f
}

// Do makes a call to the plugin of a start of a task. waiting reports whether the client still
// waits for the answer.
func (s *Storage) Do(task driver.TaskID, c storage.Call, waiting func() bool, reply func(storage.Result)) {
	path := storage.TargetPath(s.options.Root, c.Request.Alloc, c.Volume, c.Request.Usage)
	step := StepOf(c.Verb)
	if step == Staging || step == Unstaging {
		path = storage.StagePath(s.options.Root, c.Volume, c.Request.Usage)
	}
	call := Call{Step: step, Request: c.Request, Plugin: c.Plugin, ExternalID: c.ExternalID, Path: path, Options: cmp.Or(c.Request.Options, c.Claimed.Options)}
	call = s.begin(call, s.wrong(call))
	f := &flight{call: call, waiting: waiting, end: func(err error) { reply(s.result(call, err)) }}
	aborted := slices.ContainsFunc(s.flights, func(other *flight) bool {
		return other.call.Request.Volume == c.Volume && other.process != (scripted.Identity{})
	})
	s.flights = append(s.flights, f)
	p, lives := living(s.machine, task)
	if !lives {
		s.clock.After(callTime, func() { s.land(f, errGone) })
		return
	}
	f.process = p.Identity
	s.machine.NotifyEnd(p.Identity, func() { s.land(f, errDied) })
	fault := s.fault(call)
	if aborted {
		s.clock.After(callTime, func() { s.land(f, errAborted) })
		return
	}
	s.play(f, fault, func(answer func(error)) { answer(s.effect(call)) },
		func() { s.machine.Signal(p.Identity, scripted.SIGKILL, scripted.ByFault) })
}

// result returns the answer to a call. After a failed undo it contains the processes that use the
// mount.
func (s *Storage) result(c Call, err error) storage.Result {
	r := storage.Result{Err: err}
	if by, is := s.busy[c.Path]; is && err != nil && (c.Step == Unpublishing || c.Step == Unstaging) {
		r.Holders = []storage.Holder{by}
	}
	return r
}

// effect changes the mount table.
func (s *Storage) effect(c Call) error {
	_, mounted := s.mounts[c.Path]
	if (c.Step == Staging || c.Step == Publishing) && !s.known[c.ExternalID] {
		return storage.Errorf(storage.Refused, "no volume has the id %q", c.ExternalID)
	}
	switch c.Step {
	case Staging:
		s.mount(c, "")
	case Publishing:
		if _, staged := s.mounts[storage.StagePath(s.options.Root, c.Request.Volume, c.Request.Usage)]; s.Stages(c.Plugin) && !staged {
			return storage.Errorf(storage.NotStaged, "the volume is not staged")
		}
		s.mount(c, c.Request.Alloc)
	default:
		if _, busy := s.busy[c.Path]; busy && mounted {
			return fmt.Errorf("%s: device or resource busy", c.Path)
		}
		delete(s.mounts, c.Path)
	}
	return nil
}

// wrong states what is out of order with a call of a plugin.
func (s *Storage) wrong(c Call) (wrong []string) {
	q, stages := c.Request, s.Stages(c.Plugin)
	claim, claimed := s.claims[cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}]
	if c.Step == Staging || c.Step == Publishing {
		switch {
		case !claimed:
			wrong = append(wrong, "the servers have given no claim")
		case claim.ExternalID != c.ExternalID || claim.Plugin != c.Plugin:
			wrong = append(wrong, fmt.Sprintf("the claim is for %q of %q, and not %q of %q", claim.ExternalID, claim.Plugin, c.ExternalID, c.Plugin))
		}
	}
	switch c.Step {
	case Staging:
		if !stages {
			wrong = append(wrong, "the plugin does not stage")
		}
	case Publishing:
		path := storage.StagePath(s.options.Root, q.Volume, q.Usage)
		switch stage, staged := s.mounts[path]; {
		case stages && !staged && !s.lost[path]:
			wrong = append(wrong, "the volume is not staged")
		case staged && !stage.Options.Equal(c.Options):
			wrong = append(wrong, "the volume is staged with other mount options")
		}
	case Unstaging:
		for _, m := range s.Mounts() {
			if m.Volume == q.Volume && m.Usage == q.Usage && m.Alloc != "" {
				wrong = append(wrong, "the volume is published at "+m.Path)
			}
		}
	}
	return wrong
}

// Probe returns nil if the plugin answers.
func (s *Storage) Probe(task driver.TaskID, id cluster.PluginID, reply func(error)) {
	p, lives := living(s.machine, task)
	if !lives {
		s.clock.After(callTime, func() { reply(errGone) })
		return
	}
	boot := s.machine.BootNumber()
	s.clock.After(callTime+max(0, s.hungUntil[id].Sub(s.clock.Now())), func() {
		if s.machine.BootNumber() != boot {
			return
		}
		var err error
		if now, _ := s.machine.Process(p.Identity); now.Ended {
			err = errDied
		}
		reply(err)
	})
}
