package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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
	name, words, err := subject("the operation", words)
	if err != nil {
		return err
	}
	all := verbs()
	i := slices.IndexFunc(all, func(v verb) bool { return v.name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, v := range all {
			names[i] = v.name
		}
		return unknown("operation", name, names)
	}
	op, words, err := all[i].read(p, words)
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

func faultNames() []string {
	var names []string
	for _, k := range Faults() {
		names = append(names, string(k.Name))
	}
	return names
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
		if earlier := p.jobs[o.Job]; earlier != nil {
			earlier.groups[o.Rename] = true
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
