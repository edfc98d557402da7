package catalogue

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
	"github.com/seed-f9cf0b39/nodedrain/plugin/taskenv"
)

// texts replaces the variables in the services of an allocation. It reads no environment of a task: its values may be
// secrets, and every reader sees the catalogue.
type texts struct {
	alloc  *cluster.Allocation
	group  *cluster.TaskGroup
	node   *cluster.Node
	region string
	// lookups are by task, with an empty name for the group.
	lookups map[string]variables.Lookup
}

func (x *texts) replace(task, text string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	if x.lookups[task] == nil {
		if x.lookups == nil {
			x.lookups = map[string]variables.Lookup{}
		}
		x.lookups[task] = x.lookup(task)
	}
	return variables.Interpolate(text, x.lookups[task])
}

// lookup returns the variables of a task, or of the group, and those that the compatible API has for services alone. It
// makes an environment only for a variable that needs one: a query reads the names of all services.
func (x *texts) lookup(task string) variables.Lookup {
	environment := variables.Lookup(nil)
	job, group := string(x.alloc.JobID), x.group.Name
	return func(name string) (string, bool) {
		switch {
		case name == "JOB", name == "NOMAD_JOB_NAME", name == "NOMAD_JOB_ID":
			return job, true
		case name == "TASKGROUP", name == "NOMAD_GROUP_NAME":
			return group, true
		case name == "TASK" && task != "":
			return task, true
		case name == "BASE" && task != "":
			return job + "-" + group + "-" + task, true
		}
		if x.node != nil {
			if value, is := variables.OfNode(x.node, name); is {
				return value, true
			}
		}
		if environment == nil {
			environment = x.environment(task)
		}
		return environment(name)
	}
}

func (x *texts) environment(task string) variables.Lookup {
	source := taskenv.Source{Node: x.node, Region: x.region, Alloc: x.alloc, Group: x.group}
	for _, t := range x.group.Tasks {
		if t != nil && t.Name == task {
			without := *t
			without.Env = nil
			source.Task = &without
		}
	}
	env, err := taskenv.New(source)
	if err != nil {
		return func(string) (string, bool) { return "", false }
	}
	return env.Lookup
}

// Warnings returns what is wrong with the texts of a job's services on each of the nodes. Without nodes it returns none.
func Warnings(nodes iter.Seq[*cluster.Node], j *cluster.Job, region string) (warnings []string) {
	for _, g := range j.TaskGroups {
		of := texts{alloc: example(j, g), group: g, region: region}
		for task, s := range g.ServiceDefinitions() {
			place := fmt.Sprintf("group %q", g.Name)
			if task != "" {
				place += fmt.Sprintf(", task %q", task)
			}
			place += fmt.Sprintf(": service %q", cluster.CutText(s.Name))
			for i, text := range append([]string{s.Name, s.Address}, s.Tags...) {
				effect := ", so the tag stays as it is"
				if i < 2 {
					effect = ", so no node lists the service"
				}
				invalid := func(string) string { return "" }
				switch i {
				case 0:
					invalid = invalidName
				case 1:
					invalid = invalidAddress
				}
				if why := wrongEverywhere(nodes, of, task, text, invalid, effect); why != "" {
					warnings = append(warnings, fmt.Sprintf("%s: %q: %s", place, cluster.CutText(text), why))
				}
			}
		}
	}
	return warnings
}

// invalidName and invalidAddress return why the catalogue lists no service with the text, or empty.
func invalidName(name string) string {
	if cluster.ValidServiceName(name) {
		return ""
	}
	return fmt.Sprintf("the catalogue lists no service with the name %q, because a name has 1 to %d letters, digits and hyphens", cluster.CutText(name), cluster.MaxServiceNameBytes)
}

func invalidAddress(address string) string {
	if cluster.ValidAddress(address) {
		return ""
	}
	return fmt.Sprintf("the catalogue lists no service with the address %q, because it is neither an IP address nor the name of a host", cluster.CutText(address))
}

// wrongEverywhere returns what is wrong with a text on the first node, or empty if it is right on some node. invalid
// returns what is wrong with its values, and effect is that of a wrong variable.
func wrongEverywhere(nodes iter.Seq[*cluster.Node], of texts, task, text string, invalid func(string) string, effect string) (why string) {
	if !strings.Contains(text, "${") {
		return ""
	}
	for n := range nodes {
		x := of
		x.node = n
		replaced, err := x.replace(task, text)
		now := invalid(replaced)
		if err != nil {
			now = err.Error() + effect
		}
		if now == "" {
			return ""
		}
		why = cmp.Or(why, now)
	}
	return why
}

// example is an allocation of the group that nothing has placed.
func example(j *cluster.Job, g *cluster.TaskGroup) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: "00000000-0000-0000-0000-000000000000", Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: g.Name,
		Name: fmt.Sprintf("%s.%s[0]", j.ID, g.Name), Ports: &cluster.AssignedPorts{IP: "127.0.0.1"},
	}
	for owner, r := range g.PortRequests() {
		a.Ports.All = append(a.Ports.All, cluster.AssignedPort{Task: owner, Label: r.Label, Number: max(1, r.Static), To: r.To})
	}
	return a
}
