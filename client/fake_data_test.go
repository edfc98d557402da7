package client_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// fakeData are the ephemeral disks of the machine, and what the servers answer to requests for data.
type fakeData struct {
	node *node
	// folders has the content of the folders of each allocation that tasks see, and staged what has
	// arrived and is not visible.
	folders, staged map[cluster.AllocID]string
	// answers are the answers to the next requests for data. The last one stays.
	answers []dataScript
	// copies are the calls in flight, by allocation.
	copies map[cluster.AllocID]*fakeCopy
	// requests counts the requests for data, and placeErrors fail the next placements.
	requests    int
	placeErrors []error
	// roomAfter: placements find a full disk until so many allocations are removed.
	roomAfter int
}

// dataScript is how the servers and the machine answer one request for data.
type dataScript struct {
	// after is the time until data arrives, or until the answer. Each of the parts arrives after gap.
	after, gap time.Duration
	parts      []int64
	answer     client.DataAnswer
	content    string
	// silent: no answer comes after the parts.
	silent bool
}

type fakeCopy struct{ ended bool }

func newFakeData(n *node) *fakeData {
	return &fakeData{node: n, folders: map[cluster.AllocID]string{}, staged: map[cluster.AllocID]string{}, copies: map[cluster.AllocID]*fakeCopy{}}
}

// restart removes what an earlier client has received, unless its record states that it is complete.
func (f *fakeData) restart() {
	f.copies = map[cluster.AllocID]*fakeCopy{}
	for id := range f.staged {
		if rec := f.node.disk[id]; rec == nil || rec.DataIn == nil || rec.DataIn.State != client.DataInReceived {
			delete(f.staged, id)
		}
	}
}

func (f *fakeData) next() dataScript {
	f.requests++
	if len(f.answers) == 0 {
		return dataScript{after: time.Millisecond, answer: client.DataAnswer{Result: client.DataUnreached, Why: "no route"}}
	}
	one := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	return one
}

func (s *shell) CopyData(alloc *cluster.Allocation, progress func(client.DataProgress), reply func(client.DataAnswer)) {
	n := s.node
	f := n.data
	must.MapNotContainsKey(n.t, f.copies, alloc.ID, must.Sprint("two copies for ", alloc.ID))
	must.NotNil(n.t, n.disk[alloc.ID], must.Sprint("no record of ", alloc.ID))
	script := f.next()
	if !s.effect() {
		return
	}
	n.log("%s requests its data", alloc.ID)
	c := &fakeCopy{}
	f.copies[alloc.ID] = c
	answer := func(a client.DataAnswer) {
		if c.ended || s.epoch != n.epoch {
			return
		}
		c.ended = true
		delete(f.copies, alloc.ID)
		if a.Result == client.DataArrived {
			f.staged[alloc.ID] = script.content
		}
		if s.effect() {
			reply(a)
		}
	}
	at := script.after
	for i, bytes := range script.parts {
		n.after(at, s.epoch, func() {
			if !c.ended {
				f.staged[alloc.ID] = "a part"
				progress(client.DataProgress{Source: script.answer.Source, Bytes: bytes, Entries: int64(i)})
			}
		})
		at += script.gap
	}
	if !script.silent {
		n.after(at, s.epoch, func() { answer(script.answer) })
	}
}

func (s *shell) DropData(id cluster.AllocID, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		f := s.node.data
		if c := f.copies[id]; c != nil && s.epoch == s.node.epoch {
			c.ended = true
			delete(f.copies, id)
		}
		delete(f.staged, id)
		return func() { reply(nil) }
	})
}

func (s *shell) PlaceData(alloc *cluster.Allocation, from cluster.AllocID, reply func(error)) {
	s.later(time.Millisecond, func() func() {
		n := s.node
		f := n.data
		if len(f.placeErrors) > 0 {
			err := f.placeErrors[0]
			f.placeErrors = f.placeErrors[1:]
			return func() { reply(err) }
		}
		if len(n.discarded) < f.roomAfter {
			return func() { reply(fmt.Errorf("place data: %w", syscall.ENOSPC)) }
		}
		rec := n.disk[alloc.ID]
		must.NotNil(n.t, rec)
		must.NotNil(n.t, rec.DataIn)
		must.EqOp(n.t, client.DataInReceived, rec.DataIn.State, must.Sprint("the record of a placement is written ahead"))
		source, id := f.staged, alloc.ID
		if from != "" {
			must.True(n.t, n.disk[from] != nil && n.disk[from].Ended, must.Sprint("the data of ", from, " moves before its end is on the disk"))
			source, id = f.folders, from
		}
		if content, is := source[id]; is {
			delete(source, id)
			f.folders[alloc.ID] = content
			n.log("%s has the data", alloc.ID)
		}
		return func() { reply(nil) }
	})
}

// writes lets each start of a task append the id of its allocation to the data.
func (f *fakeData) writes(alloc cluster.AllocID) {
	must.MapNotContainsKey(f.node.t, f.copies, alloc, must.Sprint("a task of ", alloc, " starts while its data arrives"))
	must.MapNotContainsKey(f.node.t, f.staged, alloc, must.Sprint("a task of ", alloc, " starts before its data is placed"))
	f.folders[alloc] += " " + string(alloc)
}

// content returns the data that the tasks of an allocation see.
func (f *fakeData) content(alloc cluster.AllocID) string { return strings.TrimSpace(f.folders[alloc]) }

// moved returns an answer with all data of an allocation.
func moved(source cluster.AllocID, content string) dataScript {
	return dataScript{after: time.Second, parts: []int64{10}, gap: time.Second, content: content, answer: client.DataAnswer{
		DataProgress: client.DataProgress{Source: source, Bytes: 20, Skipped: 1},
	}}
}

func refused(why string) dataScript {
	return dataScript{after: time.Second, answer: client.DataAnswer{Result: client.DataRefused, Why: why}}
}

func cut(after time.Duration, parts ...int64) dataScript {
	return dataScript{after: after, parts: parts, gap: after, answer: client.DataAnswer{Result: client.DataFailed, Why: "the stream was cut"}}
}

// left describes what is left of the data on the machine.
func (f *fakeData) left() string {
	var words []string
	for _, id := range slices.Sorted(maps.Keys(f.staged)) {
		words = append(words, fmt.Sprintf("staged %s", id))
	}
	for _, id := range slices.Sorted(maps.Keys(f.folders)) {
		words = append(words, fmt.Sprintf("folders of %s", id))
	}
	return strings.Join(words, ", ")
}

var errDisk = errors.New("input/output error")
