package scenario

import (
	"errors"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ParseSelector reads a selector: "*", "web", "web.api", "web[0]", "@n1" or "web[0]@n1". It sets all
// fields except Replacement. It does not check that the job or the node exists.
func ParseSelector(text string) (Selector, error) {
	if text == "*" {
		return Selector{}, nil
	}
	head, node, placed := strings.Cut(text, "@")
	s := Selector{Node: cluster.NodeID(node)}
	var errs []error
	if placed {
		errs = append(errs, checkName(node))
	}
	if head != "" || !placed {
		var err error
		head, s.Indexes, err = parseIndexes(head)
		errs = append(errs, err)
		job, group, named := strings.Cut(head, ".")
		if named {
			errs = append(errs, checkName(group))
		}
		s.Group = group
		s.Job, err = parseJob(job)
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// String returns the printed selector.
func (s Selector) String() string {
	if s.Job == (cluster.JobKey{}) && s.Node == "" {
		return "*"
	}
	var text string
	if s.Job != (cluster.JobKey{}) {
		text = JobText(s.Job)
		if s.Group != "" {
			text += "." + s.Group
		}
		text += s.Indexes.text()
	}
	if s.Node != "" {
		text += "@" + string(s.Node)
	}
	return text
}

// Matches reports whether the selector matches an allocation.
func (s Selector) Matches(a *cluster.Allocation) bool {
	if s.Job != (cluster.JobKey{}) && s.Job != a.JobKey() ||
		s.Group != "" && s.Group != a.TaskGroup ||
		s.Node != "" && s.Node != a.NodeID ||
		s.Replacement && a.PreviousAllocation == "" {
		return false
	}
	if s.Indexes.Count == 0 {
		return true
	}
	index, ok := indexOf(a)
	return ok && index >= s.Indexes.First && index < s.Indexes.First+s.Indexes.Count
}

// indexOf returns the index in the allocation's name. ok is false if there is none.
func indexOf(a *cluster.Allocation) (index int, ok bool) {
	open := strings.LastIndexByte(a.Name, '[')
	if open < 0 || !strings.HasSuffix(a.Name, "]") {
		return 0, false
	}
	index, err := strconv.Atoi(a.Name[open+1 : len(a.Name)-1])
	return index, err == nil
}
