package setting

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The parts of services. Without a port of its own, a group has no address on its node either.
const (
	CheckName      = "up"
	ServiceAddress = "service.example"
	ServicePort    = "80"
)

// services returns the services of a group. Batch work has no checks.
func services(g scenario.Group, t cluster.JobType) []cluster.Service {
	if !g.Service {
		return nil
	}
	s := cluster.Service{Name: g.Name, PortLabel: ServicePort, Address: ServiceAddress}
	if len(g.Ports) > 0 {
		s.PortLabel, s.Address = portRequests(g.Ports)[0].Label, ""
	}
	if c := g.Check; c != nil && !t.ToCompletion() {
		check := cluster.ServiceCheck{Name: CheckName, Type: cluster.CheckTCP, Interval: c.Interval, Timeout: c.Timeout}
		if c.Ignored {
			check.OnUpdate = cluster.CheckIgnored
		}
		if c.Limit > 0 {
			check.Restart = &cluster.CheckRestart{Limit: c.Limit, Grace: c.Grace}
		}
		s.Checks = []cluster.ServiceCheck{check}
	}
	return []cluster.Service{s}
}
