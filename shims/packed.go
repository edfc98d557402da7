package shims

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// packedForm is a shorter encoding of a message that repeats values.
type packedForm interface {
	// unpackInto sets the message to the unpacked values.
	unpackInto(Message) error
}

// packed returns the value that is encoded for a message, and decoded to restore it.
func packed(m Message) any {
	switch m := m.(type) {
	case *ApplyPlan:
		return packPlan(m)
	case *AllocUpdateDesiredTransition:
		return packMarks(m)
	}
	return m
}

// packedPlan is a plan with one copy of each job body that placed allocations share.
type packedPlan struct {
	Plan cluster.Plan
	Jobs []*cluster.Job
	// JobOf holds the position of the job in Jobs for each of Plan.Places, counted from
	// one, or zero without a job.
	JobOf []int
}

func packPlan(m *ApplyPlan) *packedPlan {
	p := &packedPlan{Plan: m.Plan}
	p.Plan.Places = slices.Clone(m.Places)
	numbers := make(map[*cluster.Job]int)
	for i, alloc := range m.Places {
		if alloc.Job != nil && numbers[alloc.Job] == 0 {
			p.Jobs = append(p.Jobs, alloc.Job)
			numbers[alloc.Job] = len(p.Jobs)
		}
		p.JobOf = append(p.JobOf, numbers[alloc.Job])
		bare := *alloc
		bare.Job = nil
		p.Plan.Places[i] = &bare
	}
	return p
}

func (p *packedPlan) unpackInto(m Message) error {
	if len(p.JobOf) != len(p.Plan.Places) {
		return fmt.Errorf("%d allocations with %d jobs", len(p.Plan.Places), len(p.JobOf))
	}
	for i, alloc := range p.Plan.Places {
		number := p.JobOf[i]
		if number < 0 || number > len(p.Jobs) {
			return fmt.Errorf("job %d of %d", number, len(p.Jobs))
		}
		if alloc != nil && number > 0 {
			alloc.Job = p.Jobs[number-1]
		}
	}
	m.(*ApplyPlan).Plan = p.Plan
	return nil
}

// packedMarks is an entry of marks with one copy of each drain, and one copy of the group for each
// run of marks of the same group. The marks are sorted by group.
type packedMarks struct {
	At         time.Time
	Policy     rules.Policy
	Drains     []packedDrain
	Runs       []packedRun
	Reevaluate []cluster.GroupKey
	Evals      []*cluster.Evaluation
}

// packedDrain holds the fields that marks of one drain share.
type packedDrain struct {
	//lint:ignore U1000 the codec reads its tag
	_struct  bool `codec:",toarray"`
	Node     cluster.NodeID
	Drain    cluster.DrainID
	Revision cluster.Revision
}

// packedRun is a run of marks of one group.
type packedRun struct {
	Group cluster.GroupKey
	Marks []packedMark
	// Surge holds the positions in Marks, counted from zero, of the requests for replacements.
	Surge []int `codec:",omitempty"`
}

// packedMark holds the fields of one mark.
type packedMark struct {
	//lint:ignore U1000 the codec reads its tag
	_struct bool `codec:",toarray"`
	Alloc   cluster.AllocID
	// Drain is the position in Drains, counted from zero.
	Drain int
	Class cluster.MarkClass
}

func packMarks(m *AllocUpdateDesiredTransition) *packedMarks {
	p := &packedMarks{At: m.At, Policy: m.Policy, Reevaluate: m.Reevaluate, Evals: m.Evals}
	numbers := make(map[packedDrain]int)
	for i, mark := range m.Marks.Marks {
		drain := packedDrain{Node: mark.Node, Drain: mark.Drain, Revision: mark.Revision}
		number, numbered := numbers[drain]
		if !numbered {
			number = len(p.Drains)
			numbers[drain] = number
			p.Drains = append(p.Drains, drain)
		}
		if i == 0 || p.Runs[len(p.Runs)-1].Group != mark.Group {
			p.Runs = append(p.Runs, packedRun{Group: mark.Group})
		}
		run := &p.Runs[len(p.Runs)-1]
		if mark.Surge {
			run.Surge = append(run.Surge, len(run.Marks))
		}
		run.Marks = append(run.Marks, packedMark{Alloc: mark.Alloc, Drain: number, Class: mark.Class})
	}
	return p
}

func (p *packedMarks) unpackInto(m Message) error {
	marks := &m.(*AllocUpdateDesiredTransition).Marks
	*marks = rules.Marks{At: p.At, Policy: p.Policy, Reevaluate: p.Reevaluate, Evals: p.Evals}
	for _, run := range p.Runs {
		for i, mark := range run.Marks {
			if mark.Drain < 0 || mark.Drain >= len(p.Drains) {
				return fmt.Errorf("drain %d of %d", mark.Drain, len(p.Drains))
			}
			drain := p.Drains[mark.Drain]
			marks.Marks = append(marks.Marks, rules.Mark{
				Alloc: mark.Alloc, Group: run.Group, Class: mark.Class,
				Node: drain.Node, Drain: drain.Drain, Revision: drain.Revision, Surge: slices.Contains(run.Surge, i),
			})
		}
	}
	return nil
}
