package invariant

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Violation is one broken guarantee. The check determines which of its ids are set.
type Violation struct {
	// Guarantee is "G1" to "G12". Check is the rule of the [Check].
	Guarantee, Check string
	// At is the world's time. Index is the raft index of the newest entry, or zero.
	At    time.Time
	Index uint64

	Drain cluster.DrainID
	Node  cluster.NodeID
	Alloc cluster.AllocID
	Group cluster.GroupKey
	// Text describes the violation.
	Text string
}

// String returns the violation in one line.
func (v Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", v.Guarantee, v.Check)
	if v.Index > 0 {
		fmt.Fprintf(&b, " at index %d", v.Index)
	}
	for _, name := range []struct{ noun, id string }{
		{"drain", string(v.Drain)}, {"node", string(v.Node)}, {"allocation", string(v.Alloc)},
	} {
		if name.id != "" {
			fmt.Fprintf(&b, ", %s %s", name.noun, name.id)
		}
	}
	if v.Group.Name != "" {
		fmt.Fprintf(&b, ", group %s", v.Group)
	}
	fmt.Fprintf(&b, ": %s", v.Text)
	return b.String()
}

// Findings keeps the first violations of a judge. The zero value is ready to use.
type Findings struct {
	kept  []Violation
	found int
}

// Add counts a violation of a check with its text, and keeps it if fewer than most are kept.
func (l *Findings) Add(most int, c Check, v Violation, format string, args ...any) {
	if l.found++; len(l.kept) < most {
		v.Guarantee, v.Check, v.Text = c.Guarantee(), c.Rule(), fmt.Sprintf(format, args...)
		l.kept = append(l.kept, v)
	}
}

// Violations returns the kept violations in the order of their discovery.
func (l *Findings) Violations() []Violation { return slices.Clone(l.kept) }

// Found counts all violations, including those not kept.
func (l *Findings) Found() int { return l.found }

// find records a violation of a check. v has the ids of its subject.
func (j *facts) find(c Check, v Violation, format string, args ...any) {
	v.At, v.Index = j.now, j.index
	j.Add(j.options.MaxViolations, c, v, format, args...)
}

// of returns a violation that concerns an allocation.
func of(a *alloc) Violation {
	v := Violation{Node: a.node.id, Alloc: a.id(), Group: a.group.key}
	if d := a.node.drain(); d != nil {
		v.Drain = d.ID
	}
	return v
}

// on returns a violation that concerns the drain of a node.
func on(n *node) Violation {
	v := Violation{Node: n.id}
	if d := n.drain(); d != nil {
		v.Drain = d.ID
	}
	return v
}
