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

// Check is the check of a service.
type Check struct {
	Interval, Timeout time.Duration
	// Ignored: it does not decide about the health of the allocation.
	Ignored bool
	// Limit is how many failures in a row restart the task, or zero for no restarts. Those in the Grace after the start
	// of the task do not count.
	Limit int
	Grace time.Duration
}

// The words of a check.
const (
	ignoredText = "ignored"
	restartText = "restart"
)

// parseCheck reads "5s/1s", "5s/1s:ignored" or "5s/1s:restart:3/10s".
func parseCheck(text string) (c Check, err error) {
	form := fmt.Errorf("%q: write 5s/1s, 5s/1s:ignored or 5s/1s:restart:3/10s", text)
	words := strings.Split(text, ":")
	interval, timeout, _ := strings.Cut(words[0], "/")
	var errs []error
	read := func(text string, to *time.Duration) {
		var err error
		*to, err = parseDuration(text)
		errs = append(errs, err)
	}
	read(interval, &c.Interval)
	read(timeout, &c.Timeout)
	if words = words[1:]; len(words) > 0 && words[0] == ignoredText {
		c.Ignored, words = true, words[1:]
	}
	if len(words) > 0 {
		if len(words) != 2 || words[0] != restartText {
			return c, form
		}
		limit, grace, _ := strings.Cut(words[1], "/")
		if c.Limit, err = strconv.Atoi(limit); err != nil || c.Limit < 1 {
			return c, form
		}
		read(grace, &c.Grace)
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("%w: %w", form, err)
	}
	if c.Interval < cluster.MinCheckTime || c.Timeout < cluster.MinCheckTime {
		return c, fmt.Errorf("%q: the interval and the timeout are at least %s", text, DurationText(cluster.MinCheckTime))
	}
	return c, nil
}

func (c Check) text() string {
	text := DurationText(c.Interval) + "/" + DurationText(c.Timeout)
	if c.Ignored {
		text += ":" + ignoredText
	}
	if c.Limit > 0 {
		text += fmt.Sprintf(":%s:%d/%s", restartText, c.Limit, DurationText(c.Grace))
	}
	return text
}

var errNoService = errors.New("a check needs a service: write service check=5s/1s")

// HasServices reports whether a group has a service.
func (s *Scenario) HasServices() bool {
	for _, g := range s.EachGroup() {
		if g.Service {
			return true
		}
	}
	return false
}

// services refuses groups whose names no service can have.
func (p *parser) services() {
	for j, g := range p.scenario.EachGroup() {
		if earlier := p.scope.jobs[j.Key]; g.Service && !cluster.ValidServiceName(g.Name) && earlier != nil {
			p.line = earlier.line
			p.problem(fmt.Errorf("%s: no service can have this name: write letters, digits and inner hyphens", g.Name))
		}
	}
}

// TargetChange changes the targets of the checks of the allocations that it matches, and of those that match later. The
// last such event that matches decides. A target passes at the beginning.
type TargetChange struct {
	Match  Selector
	Change TargetVerb
}

// TargetVerb is a change of a target.
type TargetVerb string

// The changes of targets.
const (
	TargetFails  TargetVerb = "fails"
	TargetHangs  TargetVerb = "hangs" // it does not answer, so the run fails at its timeout
	TargetPasses TargetVerb = "passes"
)

// checked reports whether a group that the selector matches has a check.
func (s *Scenario) checked(match Selector) bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool {
		return (match.Job == cluster.JobKey{} || match.Job == j.Key) && !j.Type.ToCompletion() && slices.ContainsFunc(j.Groups, func(g Group) bool {
			return g.Check != nil && (match.Group == "" || match.Group == g.Name)
		})
	})
}
