package invariant

import (
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The methods of this file add the fields that real clients need.

func (d digest) drivers(n *cluster.Node) digest {
	d = d.bool(n.ReportsDrivers).number(uint64(n.MaxKillTimeout)).int(len(n.Drivers))
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d = text(d, name)
		if i := n.Drivers[name]; i != nil {
			d = text(d.table(i.Attributes).bool(i.Detected).bool(i.Healthy), i.HealthDescription).time(i.UpdateTime)
		}
	}
	return d
}

func (d digest) constraints(list []cluster.Constraint) digest {
	d = d.int(len(list))
	for _, c := range list {
		d = text(text(text(d, c.LTarget), c.RTarget), c.Operand)
	}
	return d
}

func (d digest) restarts(p *cluster.RestartPolicy) digest {
	if p == nil {
		return d.number(13)
	}
	return text(d.int(p.Attempts).number(uint64(p.Interval)).number(uint64(p.Delay)), p.Mode)
}

// runs adds the fields of the job, its groups and their tasks that clients need.
func (d digest) runs(j *cluster.Job) digest {
	d = d.constraints(j.Constraints).table(j.Meta)
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		d = d.restarts(g.RestartPolicy).constraints(g.Constraints).table(g.Meta).number(uint64(g.Disconnect.StopOnClientAfter))
		for _, t := range g.Tasks {
			if t != nil {
				d = d.task(t)
			}
		}
	}
	return d
}

func (d digest) task(t *cluster.Task) digest {
	d = text(text(text(d, t.Driver), string(t.Config)), t.User).table(t.Env).table(t.Meta)
	if l := t.Lifecycle; l != nil {
		d = text(d, l.Hook).bool(l.Sidecar)
	}
	d = text(d.bool(t.Leader), t.KillSignal).constraints(t.Constraints).restarts(t.RestartPolicy)
	if l := t.LogConfig; l != nil {
		d = d.int(l.MaxFiles).int(l.MaxFileSizeMB)
	}
	return d
}

func (d digest) tasks(s *cluster.TaskStates) digest {
	if s == nil {
		return d
	}
	d = d.int(len(s.Tasks))
	for _, t := range s.Tasks {
		d = text(text(d, t.Name), t.State).bool(t.Failed).number(t.Restarts)
		d = d.time(t.LastRestart).time(t.StartedAt).time(t.FinishedAt).int(len(t.Events))
		for _, e := range t.Events {
			d = text(text(d, e.Type).time(e.Time), e.Message).table(e.Details)
		}
		if w := t.Waiting; w != nil {
			d = text(text(d, w.For).time(w.Until), w.Detail)
		}
	}
	return d
}
