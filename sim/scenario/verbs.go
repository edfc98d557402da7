package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// verb is a verb of the language. read reads the words after it up to the parameters. The operation
// prints them: see [Op].
type verb struct {
	name string
	read func(p *parser, words []string) (Op, []string, error)
}

// verbs returns all verbs.
func verbs() []verb {
	exit := func(failed bool) func(*parser, string) (Op, error) {
		return func(p *parser, alloc string) (Op, error) {
			n, err := p.oneAlloc(alloc)
			return &Exit{Alloc: n, Failed: failed}, err
		}
	}
	return []verb{
		with("drain", func(p *parser, nodes string) (Op, error) {
			ids, err := p.theNodes(nodes)
			return &Drain{Nodes: ids}, err
		}),
		with("cancel", func(p *parser, nodes string) (Op, error) {
			ids, err := p.theNodes(nodes)
			return &Cancel{Nodes: ids}, err
		}),
		with("register", func(p *parser, job string) (Op, error) {
			key, err := p.theJob(job)
			return &Register{Job: key}, err
		}),
		with("edit", readEdit),
		with("stop", readStop),
		with("purge", func(p *parser, job string) (Op, error) {
			key, err := p.theJob(job)
			return &Stop{Job: key, Purge: true}, err
		}),
		with("finish", exit(false)),
		with("fail", exit(true)),
		with("place", func(p *parser, allocs string) (Op, error) {
			a, err := p.someAllocs(allocs)
			return &Place{Alloc: a}, err
		}),
		changing("node", (*scope).theNodes, func(ids []cluster.NodeID, c Change) Op { return &NodeChange{Nodes: ids, Change: c} },
			NodeDown, NodeDisconnected, NodeReady, NodeRegister, NodeDelete, NodeEligible, NodeIneligible),
		changing("volume", (*scope).theVolume, func(id cluster.VolumeID, c VolumeVerb) Op { return &VolumeChange{Volume: id, Change: c} },
			VolumeRegister, VolumeDeregister, VolumeDetach),
		onServer("elect", func(n int) Op { return &Elect{Server: n} }),
		onServer("pause", func(n int) Op { return &Pause{Server: n} }),
		onServer("clock", func(n int) Op { return &Clock{Server: n} }),
		{"restore", func(_ *parser, words []string) (Op, []string, error) { return &Restore{}, words, nil }},
		{"forget", func(_ *parser, words []string) (Op, []string, error) { return &Forget{}, words, nil }},
		with("fault", func(_ *parser, name string) (Op, error) {
			kind := FaultName(name).Kind()
			if kind.Name == "" {
				return nil, unknown("fault", name, faultNames())
			}
			return &Fault{Name: kind.Name}, nil
		}),
	}
}

// with is a verb with one subject.
func with(name string, read func(p *parser, of string) (Op, error)) verb {
	return verb{name, func(p *parser, words []string) (Op, []string, error) {
		of, words, err := subject("the subject of "+name, words)
		if err != nil {
			return nil, nil, err
		}
		op, err := read(p, of)
		return op, words, err
	}}
}

// onServer is a verb that a server may follow.
func onServer(name string, op func(server int) Op) verb {
	return verb{name, func(p *parser, words []string) (Op, []string, error) {
		n, words, err := p.server(words)
		return op(n), words, err
	}}
}

// changing is a verb with a subject and one of several changes.
func changing[S any, C ~string](name string, read func(*scope, string) (S, error), op func(S, C) Op, changes ...C) verb {
	return verb{name, func(p *parser, words []string) (Op, []string, error) {
		text, words, err := subject("the subject of "+name, words)
		if err != nil {
			return nil, nil, err
		}
		of, err := read(&p.scope, text)
		if err != nil {
			return nil, nil, err
		}
		change, words, err := subject("the change of "+text, words)
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(changes, C(change)) {
			return nil, nil, unknown("change", change, texts(changes))
		}
		return op(of, C(change)), words, nil
	}}
}

func readEdit(p *parser, of string) (Op, error) {
	s, err := p.selector(of)
	if err == nil && (s.Job == (cluster.JobKey{}) || s != Selector{Job: s.Job, Group: s.Group}) {
		err = fmt.Errorf("%q is neither a job nor a group", of)
	}
	return &Edit{Job: s.Job, Group: s.Group}, err
}

func readStop(p *parser, of string) (Op, error) {
	if strings.Contains(of, "[") {
		n, err := p.oneAlloc(of)
		return &StopAlloc{Alloc: n}, err
	}
	key, err := p.theJob(of)
	return &Stop{Job: key}, err
}

// The printed form of operations: their words, and their parameters in the order of printing.

func (o *Drain) words() []string    { return []string{"drain", listText(o.Nodes)} }
func (o *Cancel) words() []string   { return []string{"cancel", listText(o.Nodes)} }
func (o *Register) words() []string { return []string{"register", jobText(o.Job)} }
func (o *Edit) words() []string {
	return []string{"edit", Selector{Job: o.Job, Group: o.Group}.String()}
}
func (o *Stop) words() []string {
	if o.Purge {
		return []string{"purge", jobText(o.Job)}
	}
	return []string{"stop", jobText(o.Job)}
}
func (o *StopAlloc) words() []string { return []string{"stop", o.Alloc.String()} }
func (o *Exit) words() []string {
	if o.Failed {
		return []string{"fail", o.Alloc.String()}
	}
	return []string{"finish", o.Alloc.String()}
}
func (o *Place) words() []string {
	return []string{"place", groupText(o.Alloc.Group) + o.Alloc.Indexes.text()}
}
func (o *NodeChange) words() []string { return []string{"node", listText(o.Nodes), string(o.Change)} }
func (o *Elect) words() []string      { return append([]string{"elect"}, serverText(o.Server)...) }
func (o *Pause) words() []string      { return append([]string{"pause"}, serverText(o.Server)...) }
func (o *Clock) words() []string      { return append([]string{"clock"}, serverText(o.Server)...) }
func (*Restore) words() []string      { return []string{"restore"} }
func (*Forget) words() []string       { return []string{"forget"} }
func (o *Fault) words() []string      { return []string{"fault", string(o.Name)} }

func serverText(n int) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("s%d", n)}
}

func (o *Drain) fields(*scope) []field {
	return []field{
		value("deadline", &o.Deadline, parseDeadline, deadlineText),
		flag("ignore-system", &o.IgnoreSystem),
		name("key", &o.Key),
		flag("twice", &o.Twice),
	}
}

func (o *Cancel) fields(*scope) []field {
	return []field{flag("eligible", &o.Eligible), name("key", &o.Key)}
}

func (o *Edit) fields(*scope) []field {
	return []field{
		optionalCount("count", &o.Count),
		optionalCount("max-parallel", &o.MaxParallel),
		flag("remove", &o.Remove),
		name("rename", &o.Rename),
	}
}

func (o *Place) fields(p *scope) []field {
	return append(o.Alloc.fields(p), optionalCount("count", &o.Count))
}

func (o *NodeChange) fields(*scope) []field { return []field{flag("unnoticed", &o.Unnoticed)} }

func (o *Elect) fields(*scope) []field {
	return []field{flag("lost", &o.Lost), span("believes", &o.Unaware)}
}

func (o *Pause) fields(*scope) []field { return []field{span("for", &o.For).must()} }

func (o *Clock) fields(*scope) []field {
	ahead := value("ahead", &o.Ahead, parseAhead, durationText)
	return []field{ahead.must().always(func() string { return durationText(o.Ahead) })}
}

func (o *Fault) fields(p *scope) []field {
	return []field{
		p.target("on", o),
		chance("p", &o.Probability),
		number("count", &o.Count),
		span("for", &o.For),
		drawn("delay", &o.Delay),
	}
}

func (*Register) fields(*scope) []field  { return nil }
func (*Stop) fields(*scope) []field      { return nil }
func (*StopAlloc) fields(*scope) []field { return nil }
func (*Exit) fields(*scope) []field      { return nil }
func (*Restore) fields(*scope) []field   { return nil }
func (*Forget) fields(*scope) []field    { return nil }

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
	return durationText(d)
}

// parseAhead reads a time that may be negative.
func parseAhead(v string) (time.Duration, error) {
	if len(v) > 0 && v[0] == '-' {
		d, err := parseDuration(v[1:])
		return -d, err
	}
	return parseDuration(v)
}
