package timeline

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// requestText describes the operator's request in an entry. It is empty if the entry is not a
// request, changed nothing, or belongs to the setup.
func requestText(a shims.Applied) string {
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		if updated, ok := a.Response.(shims.DrainRequestApplied); !ok || updated.Repeated || updated.Drain == "" {
			return ""
		}
	case *shims.PauseDrains:
		if paused, ok := a.Response.(shims.DrainPauseApplied); !ok || !paused.Changed {
			return ""
		}
	case *shims.NodeDeregister:
	case *shims.JobRegister:
		if a.Before.Job(m.Job.Key()) == nil {
			return ""
		}
	case *shims.JobDeregister:
	default:
		return ""
	}
	return describe(a)
}

// describe describes the changes of an entry with the words of the run's story.
func describe(a shims.Applied) string {
	switch m := a.Message.(type) {
	case *shims.EvalUpdate:
		return counted(len(m.Evals), "evaluation")
	case *shims.AllocClientUpdate:
		return counted(len(m.Reports), "report")
	}
	if p, is := a.Response.(shims.PlanApplied); is {
		return describePlan(p)
	}
	return world.EntryText(a)
}

func describePlan(p shims.PlanApplied) string {
	text := fmt.Sprintf("plan: %d stopped, %d placed", len(p.Accepted.Stops), len(p.Accepted.Places))
	if len(p.Refused) > 0 {
		text += fmt.Sprintf(", %d refused", len(p.Refused))
	}
	return text
}

// counted is a number with a noun: "2 marks".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
