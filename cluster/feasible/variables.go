package feasible

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// Variables returns, sorted, the names of the variables that the tasks of a group need from their node: the
// client does not start a task with a variable that does not exist. They include names that exist on no
// node. A task with devices may name variables that only the plugins of the devices have.
func Variables(j *cluster.Job, g *cluster.TaskGroup) []string {
	needed := map[string]bool{}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		of := taskTexts{job: j, group: g, task: t, needed: needed}
		for _, value := range t.Env { //lint:order the result is sorted
			of.add(value, nil)
		}
		of.add(t.User, t.Env)
		if strings.Contains(string(t.Config), "${") {
			var config any
			if json.Unmarshal(t.Config, &config) == nil { // the client reports a config that it cannot read
				of.addAll(config)
			}
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

// taskTexts reads the texts of one task.
type taskTexts struct {
	job    *cluster.Job
	group  *cluster.TaskGroup
	task   *cluster.Task
	needed map[string]bool
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
		for key, element := range v { //lint:order the result is sorted
			t.add(key, t.task.Env)
			t.addAll(element)
		}
	}
}

// add adds the variables in a text that may name variables of the job's environment.
func (t *taskTexts) add(text string, env map[string]string) {
	for _, name := range variables.Names(text) {
		ofTask := strings.TrimPrefix(name, "env.")
		_, ofJob := env[ofTask]
		switch {
		case ofJob, name == "node.region", variables.OfTask(t.job, t.group, t.task, ofTask):
		case ofTask == "NOMAD_PARENT_CGROUP":
			t.needed["attr."+variables.ParentCgroup] = true
		case len(t.task.Devices) > 0 && !strings.Contains(ofTask, "."):
		default:
			t.needed[name] = true
		}
	}
}
