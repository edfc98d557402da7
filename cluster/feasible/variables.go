package feasible

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// Variables returns, sorted, the names of the variables that the tasks of a group need from their node: the
// client does not start a task with a variable that does not exist. They include names that exist on no
// node. A task with devices may name variables that only the plugins of the devices have. Broken is a text with a
// variable that has no end, or empty: its task starts on no node.
func Variables(j *cluster.Job, g *cluster.TaskGroup) (names []string, broken string) {
	needed := map[string]bool{}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		of := taskTexts{job: j, group: g, task: t, needed: needed}
		for _, name := range slices.Sorted(maps.Keys(t.Env)) {
			of.add(t.Env[name], nil)
		}
		of.add(t.User, t.Env)
		if strings.Contains(string(t.Config), "${") {
			var config any
			if json.Unmarshal(t.Config, &config) == nil { // the client reports a config that it cannot read
				of.addAll(config)
			}
		}
		broken = cmp.Or(broken, of.broken)
	}
	return slices.Sorted(maps.Keys(needed)), broken
}

// CheckVariables returns, sorted, the names of the variables that a check needs from its node: the check fails without
// one of them. Broken is the first of its texts that has a variable without an end, or empty: with it the check always
// fails. Owner is the task of [cluster.TaskGroup.ServiceDefinitions].
func CheckVariables(j *cluster.Job, g *cluster.TaskGroup, owner string, s *cluster.Service, c *cluster.ServiceCheck) (names []string, broken string) {
	of := taskTexts{job: j, group: g, needed: map[string]bool{}}
	env := map[string]string(nil)
	for _, t := range g.Tasks {
		if t != nil && t.Name == g.CheckTask(owner, s, c) {
			of.task, env = t, t.Env
		}
	}
	for _, text := range checkTexts(s, c) {
		of.add(text, env)
	}
	return slices.Sorted(maps.Keys(of.needed)), of.broken
}

// checkTexts are the texts of a check whose variables the client replaces.
func checkTexts(s *cluster.Service, c *cluster.ServiceCheck) []string {
	switch c.Type {
	case cluster.CheckScript:
		return append([]string{c.Command}, c.Args...)
	case cluster.CheckHTTP:
		texts := []string{cmp.Or(c.Address, s.Address), c.Path, c.Body, c.ServerName}
		for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
			texts = append(append(texts, name), c.Headers[name]...)
		}
		return texts
	default:
		return []string{cmp.Or(c.Address, s.Address)}
	}
}

// taskTexts reads the texts of one task.
type taskTexts struct {
	job   *cluster.Job
	group *cluster.TaskGroup
	// task is nil for a check of a group that belongs to no task.
	task   *cluster.Task
	needed map[string]bool
	// broken is the first text with a variable that has no end.
	broken string
}

// addAll adds the variables in the strings and keys of a JSON value.
func (t *taskTexts) addAll(value any) {
	switch v := value.(type) {
	case string:
		t.add(v, t.task.Env)
	case []any:
		for _, element := range v {
			t.addAll(element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			t.add(key, t.task.Env)
			t.addAll(v[key])
		}
	}
}

// add adds the variables in a text that may name variables of the job's environment.
func (t *taskTexts) add(text string, env map[string]string) {
	if !strings.Contains(text, "${") {
		return
	}
	if t.broken == "" && variables.Broken(text) {
		t.broken = text
	}
	for _, name := range variables.Names(text) {
		ofTask := strings.TrimPrefix(name, "env.")
		_, ofJob := env[ofTask]
		switch {
		case ofJob, name == "node.region", variables.OfTask(t.job, t.group, t.task, ofTask):
		case ofTask == "NOMAD_PARENT_CGROUP":
			t.needed["attr."+variables.ParentCgroup] = true
		case t.task != nil && len(t.task.Devices) > 0 && !strings.Contains(ofTask, "."):
		default:
			t.needed[name] = true
		}
	}
}
