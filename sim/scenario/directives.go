package scenario

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// The parameters of directives, in the order in which they are printed.

func (c *Cluster) fields() []field {
	return []field{
		number("servers", &c.Servers),
		flag("replicas", &c.Replicas),
		drawn("commit", &c.Commit),
		drawn("late", &c.Late),
		drawn("establish", &c.Establish),
		drawn("wake", &c.Wake),
		drawn("schedule", &c.Schedule),
		span("gather", &c.Gather),
		span("collect", &c.Collect),
		choice("clients", &c.Clients, RealClients),
		span("hold", &c.Hold),
	}
}

// knobs are the values of a drainer's configuration.
func knobs(c *drainer.NodeDrainerConfig) (fields []field) {
	for _, k := range c.Knobs() {
		fields = append(fields, field{
			name: k.Name,
			set: func(v string) error {
				if err := k.Value.Set(v); err != nil {
					return err
				}
				if k.Value.IsZero() && v != k.Value.Default() {
					return fmt.Errorf("%q: leave it out for the default", v)
				}
				return nil
			},
			text: func() string {
				if k.Value.IsZero() {
					return ""
				}
				return k.Value.String()
			},
		})
	}
	return fields
}

func (n *Node) fields() []field {
	return []field{
		number("cpu", &n.CPU),
		number("memory", &n.MemoryMB),
		number("disk", &n.DiskMB),
		number("gpu", &n.GPUMilli),
		number("max-allocs", &n.MaxAllocs),
		deviceKinds(&n.Devices),
		name("class", &n.Class),
		choice("status", &n.Status, cluster.NodeReady, cluster.NodeInitializing, cluster.NodeDown, cluster.NodeDisconnected),
		flag("ineligible", &n.Ineligible),
		flag("absent", &n.Unregistered),
		flag("containers", &n.Containers),
	}
}

// fields are the parameters of the job itself. Those of its own group are on the same line.
func (j *Job) fields() []field {
	return []field{
		choice("type", &j.Type, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch),
		value("priority", &j.Priority, parsePriority, wholeText[int]),
		flag("stopped", &j.Stop),
		flag("absent", &j.Unregistered),
	}
}

func (g *Group) fields() []field {
	count := value("count", &g.Count, parseCount, wholeText[int])
	return []field{
		count.always(func() string { return wholeText(g.Count) }),
		optionalCount("max-parallel", &g.MaxParallel),
		span("min-healthy", &g.MinHealthy),
		span("healthy-deadline", &g.HealthyDeadline),
		spanBy(parseAnyDuration, "kill", &g.Kill),
		spanBy(parseAnyDuration, "shutdown", &g.Shutdown),
		span("group-shutdown", &g.GroupShutdown),
		number("cpu", &g.CPU),
		number("memory", &g.MemoryMB),
		number("gpu", &g.GPUMilli),
		deviceRequests(&g.Devices),
		plugin(&g.Plugin, &g.Serves),
		volumeUses(&g.Volumes),
		flag("sticky", &g.Sticky),
		flag("migrate", &g.Migrate),
		flag("prestart", &g.Prestart),
		flag("poststart", &g.Poststart),
		flag("sidecar", &g.Sidecar),
		flag("poststop", &g.Poststop),
		span("lost-after", &g.LostAfter),
		span("stop-away", &g.StopAway),
		names("classes", &g.Classes),
	}
}

func (a *Alloc) fields(p *scope) []field {
	return []field{
		p.nodeList("on", &a.On).must(),
		choice("health", &a.Health, "good", "bad", "none"),
		flag("canary", &a.Canary),
		span("age", &a.Age),
		choice("client", &a.Client, cluster.ClientRunning, cluster.ClientPending, cluster.ClientComplete,
			cluster.ClientFailed, cluster.ClientLost, cluster.ClientUnknown),
		choice("desired", &a.Desired, cluster.DesiredRun, cluster.DesiredStop, cluster.DesiredEvict),
		flag("marked", &a.Marked),
		optionalCount("replaces", &a.Replaces),
	}
}

func (c *Client) fields() []field {
	return []field{
		flag("replacements", &c.Match.Replacement),
		optionalRange("start", &c.Start),
		optionalRange("copy", &c.Copy),
		optionalRange("verdict", &c.Verdict),
		optionalRange("run", &c.Run),
		optionalRange("stop", &c.Stop),
		pointer("unhealthy", &c.Unhealthy, func(v string) (float64, error) { return parseFraction(v, 1) }, fractionText),
		optionalRange("worsen", &c.Worsen),
		optionalRange("recover", &c.Recover),
	}
}

func (r *Run) fields(p *scope) []field {
	return []field{
		span("for", &r.For),
		span("calm", &r.Calm),
		p.serverList("cut-servers", &r.CutServers),
		p.nodeList("cut-nodes", &r.CutNodes),
		flag("drained", &r.Drained),
		flag("brief", &r.Brief),
	}
}

func parsePriority(v string) (int, error) {
	n, err := parseNumber(v, 1, 100)
	return int(n), err
}
