package scenario

import (
	"fmt"
	"time"
)

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
	return []field{flag("lost", &o.Lost), span("believes", &o.Believes)}
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

func parseCoalesce(v string) (time.Duration, error) {
	if v == noneText {
		return NoCoalescing, nil
	}
	d, err := parseDuration(v)
	if err == nil && d == 0 {
		err = fmt.Errorf("%q: write none", v)
	}
	return d, err
}

func coalesceText(d time.Duration) string {
	if d < 0 {
		return noneText
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
