package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// operations returns an empty operation for each verb of the language.
func operations() []Op {
	return []Op{
		&Drain{}, &Cancel{}, &PauseDrains{}, &ResumeDrains{}, &Confirm{}, &Register{}, &Edit{}, &Stop{}, &Stop{Purge: true}, &Exit{}, &Exit{Failed: true}, &Place{},
		&NodeChange{}, &VolumeChange{}, &TargetChange{}, &Elect{}, &Pause{}, &Clock{}, &Restore{}, &Forget{}, &Fault{},
	}
}

func (*Drain) verb() string   { return "drain" }
func (*Cancel) verb() string  { return "cancel" }
func (*Confirm) verb() string { return "confirm" }

// The verb "pause" is that of servers.
func (*PauseDrains) verb() string  { return "hold" }
func (*ResumeDrains) verb() string { return "resume" }

func (*Register) verb() string { return "register" }
func (*Edit) verb() string     { return "edit" }
func (o *Stop) verb() string {
	if o.Purge {
		return "purge"
	}
	return stopVerb
}
func (*StopAlloc) verb() string { return stopVerb }
func (o *Exit) verb() string {
	if o.Failed {
		return "fail"
	}
	return "finish"
}
func (*Place) verb() string        { return "place" }
func (*NodeChange) verb() string   { return "node" }
func (*VolumeChange) verb() string { return "volume" }
func (*TargetChange) verb() string { return "target" }
func (*Elect) verb() string        { return "elect" }
func (*Pause) verb() string        { return "pause" }
func (*Clock) verb() string        { return "clock" }
func (*Restore) verb() string      { return "restore" }
func (*Forget) verb() string       { return "forget" }
func (*Fault) verb() string        { return "fault" }

// stopVerb stops a job, or one allocation.
const stopVerb = "stop"

// place is a word between the verb and the parameters of an operation: its subject, and perhaps a
// change. Reading and printing use the same places.
type place struct {
	set  func(word string) error
	text func() string
}

func placed[T any](to *T, parse func(string) (T, error), text func(T) string) place {
	return place{func(word string) (err error) {
		*to, err = parse(word)
		return err
	}, func() string { return text(*to) }}
}

// changed is the place of one of several changes.
func changed[T ~string](to *T, changes ...T) place {
	return placed(to, func(word string) (T, error) {
		if !slices.Contains(changes, T(word)) {
			return "", unknown("change", word, texts(changes))
		}
		return T(word), nil
	}, itself[T])
}

// places returns the places of an operation. The scope is nil for printing.
func (p *scope) places(op Op) []place {
	nodes := func(to *[]cluster.NodeID) place { return placed(to, p.theNodes, listText[cluster.NodeID]) }
	job := func(to *cluster.JobKey) []place { return []place{placed(to, p.theJob, JobText)} }
	alloc := func(to *AllocName) []place { return []place{placed(to, p.oneAlloc, AllocName.String)} }
	server := func(to *int) []place { return []place{placed(to, p.server, serverText)} }
	switch o := op.(type) {
	case *Drain:
		return []place{nodes(&o.Nodes)}
	case *Cancel:
		return []place{nodes(&o.Nodes)}
	case *Confirm:
		return []place{nodes(&o.Nodes)}
	case *PauseDrains:
		return []place{placed(&o.Nodes, p.nodesOrAll, nodesOrAllText)}
	case *ResumeDrains:
		return []place{placed(&o.Nodes, p.nodesOrAll, nodesOrAllText)}
	case *Register:
		return job(&o.Job)
	case *Edit:
		return []place{{func(word string) (err error) {
			o.Job, o.Group, err = p.jobOrGroup(word)
			return err
		}, func() string { return Selector{Job: o.Job, Group: o.Group}.String() }}}
	case *Stop:
		return job(&o.Job)
	case *StopAlloc:
		return alloc(&o.Alloc)
	case *Exit:
		return alloc(&o.Alloc)
	case *Place:
		return []place{placed(&o.Alloc, p.someAllocs, func(a Alloc) string { return GroupText(a.Group) + a.Indexes.text() })}
	case *NodeChange:
		return []place{nodes(&o.Nodes), changed(&o.Change,
			NodeDown, NodeDisconnected, NodeReady, NodeRegister, NodeDelete, NodeEligible, NodeIneligible)}
	case *VolumeChange:
		return []place{placed(&o.Volume, p.theVolume, itself[cluster.VolumeID]),
			changed(&o.Change, VolumeRegister, VolumeDeregister, VolumeDetach)}
	case *TargetChange:
		return []place{placed(&o.Match, p.selector, Selector.String), changed(&o.Change, TargetFails, TargetHangs, TargetPasses)}
	case *Elect:
		return server(&o.Server)
	case *Pause:
		return server(&o.Server)
	case *Clock:
		return server(&o.Server)
	case *Fault:
		return []place{placed(&o.Name, parseFault, itself[FaultName])}
	}
	return nil
}

// spelled returns the printed words of an operation, without its parameters.
func spelled(op Op) []string {
	words := []string{op.verb()}
	for _, place := range (*scope)(nil).places(op) {
		if text := place.text(); text != "" { // a server that is left out
			words = append(words, text)
		}
	}
	return words
}

// operation reads an operation up to its parameters, which it returns.
func (p *scope) operation(words []string) (Op, []string, error) {
	verb, words, err := subject("the operation", words)
	if err != nil {
		return nil, nil, err
	}
	var op Op
	var verbs []string
	for _, o := range operations() {
		if verbs = append(verbs, o.verb()); o.verb() == verb {
			op = o
		}
	}
	switch {
	case op == nil:
		return nil, nil, unknown("operation", verb, verbs)
	case verb == stopVerb && len(words) > 0 && strings.Contains(words[0], "["):
		op = &StopAlloc{}
	}
	of := "the subject of " + verb
	for _, place := range p.places(op) {
		switch op.(type) {
		case *Elect, *Pause, *Clock: // the server may be left out
			if len(words) == 0 || !isServer(words[0]) {
				return op, words, nil
			}
		}
		var word string
		if word, words, err = subject(of, words); err == nil {
			err = place.set(word)
		}
		if err != nil {
			return nil, nil, err
		}
		of = "the change of " + word
	}
	return op, words, nil
}

// jobOrGroup reads a job or a group.
func (p *scope) jobOrGroup(text string) (cluster.JobKey, string, error) {
	s, err := p.selector(text)
	if err == nil && (s.Job == (cluster.JobKey{}) || s != Selector{Job: s.Job, Group: s.Group}) {
		err = fmt.Errorf("%q is neither a job nor a group", text)
	}
	return s.Job, s.Group, err
}

func parseFault(name string) (FaultName, error) {
	if FaultName(name).Kind().Name == "" {
		return "", unknown("fault", name, faultNames())
	}
	return FaultName(name), nil
}

// The deadlines that are words.
const (
	noneText     = "none"
	forceText    = "force"
	infiniteText = "infinite"
)

func parseDeadline(v string) (time.Duration, error) {
	switch v {
	case noneText:
		return 0, nil
	case forceText:
		return Force, nil
	case infiniteText:
		return Never, nil
	}
	d, err := parseDuration(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w; a deadline may also be none, force or infinite", err)
	case d == 0:
		return 0, fmt.Errorf("%q: write none or force", v)
	}
	return d, nil
}

func deadlineText(d time.Duration) string {
	switch {
	case d < 0:
		return forceText
	case d == Never:
		return infiniteText
	}
	return DurationText(d)
}

// parseAhead reads a time that may be negative.
func parseAhead(v string) (time.Duration, error) {
	if len(v) > 0 && v[0] == '-' {
		d, err := parseDuration(v[1:])
		return -d, err
	}
	return parseDuration(v)
}

// allText means all drains.
const allText = "all"

// nodesOrAll reads nodes, or none for all drains.
func (p *scope) nodesOrAll(text string) ([]cluster.NodeID, error) {
	if text == allText {
		return nil, nil
	}
	return p.theNodes(text)
}

func nodesOrAllText(ids []cluster.NodeID) string {
	if len(ids) == 0 {
		return allText
	}
	return listText(ids)
}
