package scenario

import (
	"errors"
	"fmt"
	"slices"
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
	op, words, err := p.scope.operation(words)
	if err != nil {
		return err
	}
	_, err = params(p.scope.fields(op), words)
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

// checkOp checks an operation as a whole. It records the allocations and names that the operation
// adds.
func (p *parser) checkOp(op Op) error {
	switch o := op.(type) {
	case *Edit:
		return p.checkEdit(o)
	case *Place:
		return p.addAllocs(o.Alloc)
	case *Fault:
		return p.checkFault(o)
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
	case o.Remove && (o.Count != nil || o.MaxParallel != nil || o.MaxSurge != nil || o.Version != nil || o.Service != nil):
		return errors.New("remove excludes count, max-parallel, max-surge, version and service")
	case o.Rename != "":
		if earlier := p.scope.jobs[o.Job]; earlier != nil {
			earlier.groups[o.Rename] = true
		}
	}
	return nil
}

func (p *parser) checkFault(o *Fault) error {
	kind := o.Name.Kind()
	if o.On != "" {
		if err := p.scope.checkTarget(kind, o.On); err != nil {
			return fmt.Errorf("on: %w", err)
		}
	}
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
