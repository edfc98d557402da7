package timeline

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// maxNames is the largest number of names in a text. The text counts the others.
const maxNames = 8

// requestText describes the operator's request in an entry. It is empty if the entry is not a
// request, changed nothing, or belongs to the setup.
func requestText(a shims.Applied) string {
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		if updated, ok := a.Response.(shims.DrainRequestApplied); !ok || updated.Repeated || updated.Drain == "" {
			return ""
		}
	case *shims.NodeDeregister:
	case *shims.JobRegister:
		if a.Before.Job(jobKeyOf(m.Job)) == nil {
			return ""
		}
	case *shims.JobDeregister:
	default:
		return ""
	}
	return describe(a)
}

// describe describes the changes of an entry.
func describe(a shims.Applied) string {
	if refused, is := a.Response.(shims.Refused); is {
		return fmt.Sprintf("refused: %v", refused.Err)
	}
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		return fmt.Sprintf("register %s", m.Node.ID)
	case *shims.NodeDeregister:
		return "delete " + names(m.Nodes)
	case *shims.NodeUpdateStatus:
		return fmt.Sprintf("%s is %s", m.Node, m.Status)
	case *shims.NodeUpdateEligibility:
		return fmt.Sprintf("%s is %s", m.Node, m.Eligibility)
	case *shims.NodeUpdateDrain:
		return describeDrain(a, m)
	case *shims.JobRegister:
		return describeJob(m.Job)
	case *shims.JobDeregister:
		if m.Purge {
			return fmt.Sprintf("purge %s", m.Job)
		}
		return fmt.Sprintf("stop %s", m.Job)
	case *shims.EvalUpdate:
		return counted(len(m.Evals), "evaluation")
	case *shims.AllocClientUpdate:
		return counted(len(m.Reports), "report")
	}
	switch response := a.Response.(type) {
	case shims.CollectApplied:
		d := response.Deleted
		return fmt.Sprintf("collect %s, %s and %s", counted(len(d.Allocs), "allocation"), counted(len(d.Evals), "evaluation"), counted(len(d.Jobs), "job"))
	case shims.PlanApplied:
		return describePlan(response)
	case shims.MarksApplied:
		return describeMarks(a, response)
	case shims.CompletionsApplied:
		return describeEnds(response)
	}
	return "skipped"
}

func describeDrain(a shims.Applied, m *shims.NodeUpdateDrain) string {
	updated, _ := a.Response.(shims.DrainRequestApplied)
	was := a.Before.Node(m.Node)
	switch {
	case updated.Repeated:
		return fmt.Sprintf("drain %s: repeated request", m.Node)
	case m.Spec == nil && updated.Drain == "":
		return fmt.Sprintf("cancel the drain of %s: there is none", m.Node)
	case m.Spec == nil:
		return fmt.Sprintf("cancel the drain of %s: %s withdrawn", m.Node, counted(updated.Withdrawn, "mark"))
	case was.Draining():
		return fmt.Sprintf("update the drain of %s: %s", m.Node, describeSpec(*m.Spec))
	}
	return fmt.Sprintf("drain %s: %s", m.Node, describeSpec(*m.Spec))
}

func describeSpec(s cluster.DrainSpec) string {
	text := "no deadline"
	switch {
	case s.Deadline > 0:
		text = "deadline " + brief(s.Deadline)
	case s.Deadline < 0:
		text = "force"
	}
	if s.IgnoreSystemJobs {
		text += ", without system jobs"
	}
	return text
}

func describeJob(j *cluster.Job) string {
	var groups []string
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		text := fmt.Sprintf("%s count %d", g.Name, g.Count)
		if g.Migrate != nil {
			text += fmt.Sprintf(" max_parallel %d", g.Migrate.MaxParallel)
		}
		groups = append(groups, text)
	}
	return fmt.Sprintf("job %s: %s", jobKeyOf(j), strings.Join(groups, ", "))
}

func describePlan(p shims.PlanApplied) string {
	text := fmt.Sprintf("plan: %d stopped, %d placed", len(p.Accepted.Stops), len(p.Accepted.Places))
	if len(p.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(p.Refused))
	}
	return text
}

func describeMarks(a shims.Applied, marked shims.MarksApplied) string {
	var classes [cluster.MarkClassCount]int
	ids := make([]string, len(marked.Accepted))
	for i, m := range marked.Accepted {
		if m.Class < cluster.MarkClassCount {
			classes[m.Class]++
		}
		ids[i] = allocName(a.Before.Alloc(m.Alloc), m.Alloc)
	}
	var parts []string
	for class, n := range classes {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, cluster.MarkClass(class)))
		}
	}
	text := "no mark"
	if len(ids) > 0 {
		text = fmt.Sprintf("mark %s (%s)", names(ids), strings.Join(parts, ", "))
	}
	if len(marked.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(marked.Refused))
	}
	return text
}

func describeEnds(ended shims.CompletionsApplied) string {
	ends := make([]string, len(ended.Ended))
	for i, e := range ended.Ended {
		ends[i] = fmt.Sprintf("%s %s", e.Node, e.Outcome)
		if e.StillStopping > 0 {
			ends[i] += fmt.Sprintf(", %d still stopping", e.StillStopping)
		}
	}
	text := "no end"
	if len(ends) > 0 {
		text = "end " + names(ends)
	}
	if len(ended.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(ended.Refused))
	}
	return text
}

// allocName is the allocation's name and node, or its id if its record is gone.
func allocName(a *cluster.Allocation, id cluster.AllocID) string {
	if a == nil {
		return string(id)
	}
	return fmt.Sprintf("%s@%s", rowName(a), a.NodeID)
}

// names joins names, up to maxNames of them.
func names[T ~string](ids []T) string {
	words := make([]string, 0, maxNames+1)
	for i, id := range ids {
		if i == maxNames {
			words = append(words, fmt.Sprintf("and %d more", len(ids)-maxNames))
			break
		}
		words = append(words, string(id))
	}
	return strings.Join(words, ", ")
}

// counted is a number with a noun: "2 marks".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func jobKeyOf(j *cluster.Job) cluster.JobKey {
	if j.Namespace == "" { // the FSM replaces an empty namespace
		return cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: j.ID}
	}
	return cluster.JobKey{Namespace: j.Namespace, ID: j.ID}
}
