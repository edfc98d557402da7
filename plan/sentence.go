package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// sentence is the answer in one line.
func sentence(a *drainplan.Answer, q Question) string {
	parts := []string{leaving(a)}
	if a.Taken > 0 {
		by := "the deadline"
		if q.Spec.Deadline < 0 {
			by = "force"
		}
		parts = append(parts, fmt.Sprintf("%s by %s", are(a.Taken, "is taken", "are taken"), by))
	}
	parts = append(parts, unplaced(a.Unplaced)...)
	parts = append(parts, stopping(a.Groups)...)
	return strings.Join(append(parts, health(a.Groups)), "; ")
}

func leaving(a *drainplan.Answer) string {
	what := are(a.Allocs, "allocation leaves", "allocations leave")
	if a.Allocs == 0 {
		what = "no allocation leaves"
	}
	switch {
	case a.Took == 0 && stuck(a) > 0:
		return fmt.Sprintf("%s, and the drain does not end: %s", what, are(stuck(a), "allocation waits", "allocations wait"))
	case a.Took == 0:
		return what
	case a.Most > a.Took:
		return fmt.Sprintf("%s in %s (longest %s)", what, short(a.Took), short(a.Most))
	}
	return fmt.Sprintf("%s in %s", what, short(a.Took))
}

// stuck counts the allocations that keep drains from ending.
func stuck(a *drainplan.Answer) (sum int) {
	for _, n := range a.Nodes {
		sum += len(n.Waits)
	}
	return sum
}

func are(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// unplaced names at most two groups that fit nowhere.
func unplaced(all []drainplan.Unplaced) (parts []string) {
	for i, u := range all {
		if i == 2 {
			return append(parts, are(len(all)-2, "more group fits nowhere", "more groups fit nowhere"))
		}
		if u.Allocs == 1 {
			parts = append(parts, fmt.Sprintf("1 allocation of %s fits nowhere", groupName(u.JobID, u.Group)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d allocations of %s fit nowhere", u.Allocs, groupName(u.JobID, u.Group)))
	}
	return parts
}

// stopping names the groups that stop before their replacements start although the drains have a max_surge.
func stopping(groups []drainplan.Group) []string {
	var names []string
	for _, g := range groups {
		if g.StopsFirst != "" {
			names = append(names, groupName(g.JobID, g.Group))
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return []string{names[0] + " stops before its replacement starts"}
	}
	return []string{fmt.Sprintf("%d groups stop before their replacements start", len(names))}
}

// health names the groups that fall below their limit, and those without a healthy allocation for a time.
func health(groups []drainplan.Group) string {
	var below, down []string
	for _, g := range groups {
		name := groupName(g.JobID, g.Group)
		switch {
		case g.Type != "service":
		case g.Down > 0 && !g.Recovered && g.Lowest == 0:
			down = append(down, name+" stays down")
		case g.Down > 0:
			down = append(down, fmt.Sprintf("%s is down for %s", name, short(g.Down)))
		case g.Lowest < min(g.Needed, g.Healthy):
			below = append(below, fmt.Sprintf("%s falls to %d healthy of %d required", name, g.Lowest, g.Needed))
		}
	}
	all := append(down, below...)
	switch {
	case len(all) == 0:
		return "nothing falls below its limit"
	case len(all) > 2:
		return fmt.Sprintf("%s; %s; and %s", all[0], all[1], are(len(all)-2, "more group", "more groups"))
	}
	return strings.Join(all, "; ")
}

func groupName(job, group string) string {
	if job == group {
		return job
	}
	return job + "." + group
}

// short rounds a time for people.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	default:
		d = d.Round(100 * time.Millisecond)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
