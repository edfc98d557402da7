package demo

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// scale is how many simulated seconds pass in a real one.
type scale float64

// real is the real duration of a simulated one.
func (s scale) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / float64(s))
}

// job returns the job with all its times scaled.
func (s scale) job(j *cluster.Job) *cluster.Job {
	j = j.Copy()
	for _, g := range j.TaskGroups {
		g.ShutdownDelay, g.MaxRunDuration = s.real(g.ShutdownDelay), s.real(g.MaxRunDuration)
		g.Disconnect.LostAfter = s.real(g.Disconnect.LostAfter)
		if g.Migrate != nil {
			g.Migrate.MinHealthyTime = s.real(g.Migrate.MinHealthyTime)
			g.Migrate.HealthyDeadline = s.real(g.Migrate.HealthyDeadline)
		}
		for _, t := range g.Tasks {
			t.KillTimeout = s.real(t.KillTimeout)
			t.ShutdownDelay = s.real(t.ShutdownDelay)
		}
	}
	return j
}

// policy returns the default policy with its margins scaled.
func (s scale) policy() rules.Policy {
	return rules.Policy{
		HealthGrace: s.real(rules.DefaultHealthGrace),
		StopMargin:  s.real(rules.DefaultStopMargin),
	}
}
