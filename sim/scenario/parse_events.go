package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// event reads "at 5s drain n1", or "at 5s before marks maybe drain n1".
func (p *parser) event(words []string) error {
	when, words, err := subject("the time", words)
	if err != nil {
		return err
	}
	e := Event{Line: p.line}
	if e.At, err = p.moment(when); err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "before" {
		var kind string
		if kind, words, err = subject("the kind of entry", words[1:]); err != nil {
			return err
		}
		e.Before = EntryKind(kind)
		if kinds := entryKinds(); !slices.Contains(kinds, kind) {
			return unknown("kind of entry", kind, kinds)
		}
	}
	if len(words) > 0 && words[0] == "maybe" {
		e.Maybe, words = true, words[1:]
	}
	verb, words, err := subject("the operation", words)
	if err != nil {
		return err
	}
	op, words, err := p.op(verb, words)
	if err != nil {
		return err
	}
	_, err = params(op.fields(&p.scope), words)
	e.Op = op
	p.scenario.Events = append(p.scenario.Events, e)
	return errors.Join(err, p.checkOp(op))
}

// moment reads the time of an event: "5s" from the beginning, "+5s" from the event before.
func (p *parser) moment(text string) (time.Duration, error) {
	after, relative := strings.CutPrefix(text, "+")
	at, err := parseDuration(after)
	if events := p.scenario.Events; err == nil && relative && len(events) > 0 {
		at += events[len(events)-1].At // neither is more than a hundred years
	}
	if at > longest {
		return 0, fmt.Errorf("%q is more than a hundred years after the beginning", text)
	}
	return at, err
}

func entryKinds() []string {
	return []string{string(Marks), string(Completions), string(Plan), string(Report), string(Collection)}
}

func verbs() []string {
	return []string{"drain", "cancel", "register", "edit", "stop", "purge", "finish", "fail", "place", "node", "volume",
		"elect", "pause", "clock", "restore", "forget", "fault"}
}

// op reads an operation up to its parameters.
func (p *parser) op(verb string, words []string) (Op, []string, error) {
	switch verb {
	case "restore":
		return &Restore{}, words, nil
	case "forget":
		return &Forget{}, words, nil
	case "elect":
		n, words, err := p.server(words)
		return &Elect{Server: n}, words, err
	case "pause":
		n, words, err := p.server(words)
		return &Pause{Server: n}, words, err
	case "clock":
		n, words, err := p.server(words)
		return &Clock{Server: n}, words, err
	}
	if !slices.Contains(verbs(), verb) {
		return nil, nil, unknown("operation", verb, verbs())
	}
	what, words, err := subject("the subject of "+verb, words)
	if err != nil {
		return nil, nil, err
	}
	if verb == "node" {
		return p.nodeChange(what, words)
	}
	if verb == "volume" {
		return p.volumeChange(what, words)
	}
	op, err := p.opOn(verb, what)
	return op, words, err
}

// opOn reads an operation on something.
func (p *parser) opOn(verb, what string) (Op, error) {
	switch verb {
	case "drain":
		ids, err := p.theNodes(what)
		return &Drain{Nodes: ids}, err
	case "cancel":
		ids, err := p.theNodes(what)
		return &Cancel{Nodes: ids}, err
	case "edit":
		s, err := p.selector(what)
		if err == nil && (s.Job == (cluster.JobKey{}) || s != Selector{Job: s.Job, Group: s.Group}) {
			err = fmt.Errorf("%q is neither a job nor a group", what)
		}
		return &Edit{Job: s.Job, Group: s.Group}, err
	case "place":
		a, err := p.someAllocs(what)
		return &Place{Alloc: a}, err
	case "finish", "fail":
		n, err := p.oneAlloc(what)
		return &Exit{Alloc: n, Failed: verb == "fail"}, err
	case "stop":
		if strings.Contains(what, "[") {
			n, err := p.oneAlloc(what)
			return &StopAlloc{Alloc: n}, err
		}
	case "fault":
		kind := FaultName(what).Kind()
		if kind.Name == "" {
			return nil, unknown("fault", what, faultNames())
		}
		return &Fault{Name: kind.Name}, nil
	}
	key, err := parseJob(what) // stop, purge and register
	if err == nil {
		err = p.knowsJob(key)
	}
	if verb == "register" {
		return &Register{Job: key}, err
	}
	return &Stop{Job: key, Purge: verb == "purge"}, err
}

func faultNames() []string {
	var names []string
	for _, k := range Faults() {
		names = append(names, string(k.Name))
	}
	return names
}

// nodeChange reads a change of nodes.
func (p *parser) nodeChange(what string, words []string) (Op, []string, error) {
	ids, err := p.theNodes(what)
	if err != nil {
		return nil, nil, err
	}
	change, words, err := subject("the change of "+what, words)
	if err != nil {
		return nil, nil, err
	}
	changes := []string{string(NodeDown), string(NodeDisconnected), string(NodeReady), string(NodeRegister),
		string(NodeDelete), string(NodeEligible), string(NodeIneligible)}
	if !slices.Contains(changes, change) {
		return nil, nil, unknown("change", change, changes)
	}
	return &NodeChange{Nodes: ids, Change: Change(change)}, words, nil
}

// server reads "s2" if it is the first word. Otherwise it returns 0.
func (p *scope) server(words []string) (int, []string, error) {
	if len(words) == 0 {
		return 0, words, nil
	}
	digits, is := strings.CutPrefix(words[0], "s")
	n, err := strconv.Atoi(digits)
	if !is || err != nil {
		return 0, words, nil // a parameter
	}
	servers := max(1, p.cluster.Servers)
	if n < 1 || n > servers || digits[0] == '0' {
		return 0, nil, fmt.Errorf("there is no server %s: the cluster has %d", words[0], servers)
	}
	return n, words[1:], nil
}

// checkOp checks an operation as a whole. It records the allocations and names that the operation
// adds.
func (p *parser) checkOp(op Op) error {
	switch o := op.(type) {
	case *Edit:
		return p.checkEdit(o)
	case *Place:
		return p.addAllocs(o.Alloc)
	case *Fault:
		return o.check()
	}
	return nil
}

func (p *parser) checkEdit(o *Edit) error {
	if !o.Remove && o.Rename == "" {
		return nil
	}
	switch {
	case o.Group == "":
		return errors.New("remove and rename need one group: write job.group")
	case o.Remove && o.Rename != "":
		return errors.New("remove and rename exclude each other")
	case o.Remove && (o.Count != nil || o.MaxParallel != nil):
		return errors.New("remove excludes count and max-parallel")
	case o.Rename != "":
		if known := p.jobs[o.Job]; known != nil {
			known.groups[o.Rename] = true
		}
	}
	return nil
}

// check checks the fault as a whole.
func (o *Fault) check() error {
	kind := o.Name.Kind()
	switch {
	case kind.Delays == NoDelay && o.Delay != (Range{}):
		return fmt.Errorf("%s has no delay", o.Name)
	case kind.Delays == MustDelay && o.Delay == (Range{}):
		return fmt.Errorf("%s needs a delay", o.Name)
	case kind.Lasts && (o.Count != 0 || o.For != 0):
		return fmt.Errorf("%s strikes once, when it is armed: it takes neither count nor for", o.Name)
	}
	return nil
}
