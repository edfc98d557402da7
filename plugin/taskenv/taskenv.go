// Package taskenv makes the environment of a task, and replaces variables such as ${attr.kernel.name}
// in its config, environment and user.
//
// A task gets the variables that users of the compatible scheduler expect:
//
//	NOMAD_ALLOC_DIR, NOMAD_TASK_DIR, NOMAD_SECRETS_DIR     folders, as they are in the task
//	NOMAD_ALLOC_ID, NOMAD_SHORT_ALLOC_ID, NOMAD_ALLOC_NAME, NOMAD_ALLOC_INDEX
//	NOMAD_TASK_NAME, NOMAD_GROUP_NAME, NOMAD_JOB_ID, NOMAD_JOB_NAME
//	NOMAD_NAMESPACE, NOMAD_DC, NOMAD_REGION
//	NOMAD_CPU_LIMIT, NOMAD_MEMORY_LIMIT                    if the task has a limit
//	NOMAD_PARENT_CGROUP                                    if the node has control groups
//	NOMAD_CPU_CORES                                        the cores of the task, such as 0-1,4
//	NOMAD_MEMORY_MAX_LIMIT                                 if the task has memory_max
//	CSI_ENDPOINT                                           of a storage plugin
//	NOMAD_PORT_<label>, NOMAD_IP_<label>, NOMAD_ADDR_<label>
//	                                                       of ports of the group and of the task itself
//	NOMAD_HOST_PORT_<label>, NOMAD_HOST_IP_<label>, NOMAD_HOST_ADDR_<label>
//	NOMAD_ALLOC_PORT_<label>, NOMAD_ALLOC_IP_<label>, NOMAD_ALLOC_ADDR_<label>
//	NOMAD_PORT_<task>_<label>, NOMAD_IP_<task>_<label>, NOMAD_ADDR_<task>_<label>
//	                                                       of ports that other tasks themselves request
//	NOMAD_META_<key>                                       of job, group and task, but for keys that begin with "nodedrain."
//
// NOMAD_HOST_PORT_<label> is the port of the host. NOMAD_PORT_<label> and NOMAD_ALLOC_PORT_<label> are the
// port to which the driver maps it, and otherwise also the port of the host. In labels and in names of tasks, a
// character that is no letter, digit or underscore becomes an underscore. If the group and the task have a port with
// the same label, the variables are those of the task's port.
//
// The name of a job is its id. NOMAD_JOB_PARENT_ID is not set, because no job has a parent here. A key
// of meta appears twice: as it is, and in capital letters. In both, a character that is no letter,
// digit or underscore becomes an underscore. If a key is in several places, the task's meta wins over
// the group's, and that over the job's.
//
// The environment has no variable of the client's own environment, also no PATH. The job's env wins
// over the variables above, and the environment of devices wins over the job's.
//
// A text may name these variables:
//
//	${attr.NAME}, ${driver.NAME}   attributes of the node and its drivers
//	${meta.NAME}                   meta of the node
//	${node.unique.id}, ${node.unique.name}, ${node.datacenter}, ${node.region}, ${node.class}, ${node.pool}
//	${NAME}, ${env["NAME"]}        variables of the task's environment
//
// The values of the job's env may name all but each other and the environment of devices. A
// variable that does not exist is an error, and the task does not start: an empty text in its place
// could make a command do something else. So is a text with more than [variables.MaxText] bytes after the
// replacement, a variable with more than [MaxVariable], and an environment with more than [MaxSize].
package taskenv

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Dirs are the folders of a task, as the task sees them.
type Dirs struct {
	// Alloc is what the tasks of the allocation share, Task the task's own, Secrets its secrets.
	Alloc, Task, Secrets string
}

// DirsOf returns the folders of a task under a driver with this isolation. AllocDir is the folder
// of the allocation and taskDir that of the task, both on the host. A task whose file system is
// restricted but not another one (unveil) sees the paths of the host.
func DirsOf(isolation driver.FSIsolation, allocDir, taskDir string) Dirs {
	if isolation == driver.FSChroot || isolation == driver.FSImage {
		return Dirs{Alloc: "/alloc", Task: "/local", Secrets: "/secrets"}
	}
	return Dirs{
		Alloc: filepath.Join(allocDir, "alloc"), Task: filepath.Join(taskDir, "local"), Secrets: filepath.Join(taskDir, "secrets"),
	}
}

// Source is what an environment is made of. Nil pointers and empty texts leave their variables out.
type Source struct {
	Node   *cluster.Node // must not change
	Region string
	Alloc  *cluster.Allocation
	Group  *cluster.TaskGroup
	Task   *cluster.Task
	Dirs   Dirs
	// Endpoint is where a storage plugin must serve CSI.
	Endpoint string
	// Devices is the environment that the task's devices need, or nil.
	Devices map[string]string
}

// Bounds on the environment of a task. The kernel starts no process with more.
const (
	// MaxSize bounds the names and values together, in bytes.
	MaxSize = cluster.MaxTaskEnvBytes
	// MaxVariable bounds a variable, "NAME=value", in bytes. It is MAX_ARG_STRLEN of Linux without the zero
	// byte at the end.
	MaxVariable = 128<<10 - 1
)

// Env is the environment of a task. It does not change.
type Env struct {
	vars   map[string]string // of the task
	node   *cluster.Node     // whose facts texts may name, or nil
	region string
	size   int // of vars, in bytes
	// excess names the first variable that exceeds a bound, or is nil.
	excess error
}

// New returns the environment of a task. The error names the variable of the job that is not valid or
// names an unknown one, or the variable that exceeds [MaxVariable] or [MaxSize].
func New(s Source) (*Env, error) {
	e := &Env{vars: map[string]string{}, node: s.Node, region: s.Region}
	e.set("NOMAD_REGION", s.Region)
	if s.Node != nil {
		e.set("NOMAD_DC", s.Node.Datacenter)
		e.set("NOMAD_PARENT_CGROUP", s.Node.Attributes[variables.ParentCgroup])
	}
	e.addAlloc(s.Alloc, s.Group)
	e.addPorts(s.Alloc, s.Task)
	if s.Alloc != nil && s.Task != nil {
		if cores := s.Alloc.Cores.Of(s.Task.Name); len(cores) > 0 {
			e.set("NOMAD_CPU_CORES", cores.String())
		}
	}
	e.set("NOMAD_ALLOC_DIR", s.Dirs.Alloc)
	e.set("NOMAD_TASK_DIR", s.Dirs.Task)
	e.set("NOMAD_SECRETS_DIR", s.Dirs.Secrets)
	e.set("CSI_ENDPOINT", s.Endpoint)
	if s.Task == nil {
		if e.excess != nil {
			return nil, fmt.Errorf("environment: %w", e.excess)
		}
		return e, nil
	}
	e.addTask(s.Task)
	before := &Env{vars: maps.Clone(e.vars), node: e.node, region: e.region}
	for _, name := range slices.Sorted(maps.Keys(s.Task.Env)) {
		value, err := before.Interpolate(s.Task.Env[name])
		if err == nil {
			err = check(name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("environment of task %s: variable %q: %w", s.Task.Name, name, err)
		}
		e.put(name, value)
		if e.excess != nil {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Devices)) {
		e.put(name, s.Devices[name])
	}
	if e.excess != nil {
		return nil, fmt.Errorf("environment of task %s: %w", s.Task.Name, e.excess)
	}
	return e, nil
}

// put sets a variable.
func (e *Env) put(name, value string) {
	if old, is := e.vars[name]; is {
		e.size -= len(name) + len(old)
	}
	e.size += len(name) + len(value)
	switch size := len(name) + len("=") + len(value); {
	case e.excess != nil:
	case size > MaxVariable:
		e.excess = fmt.Errorf("variable %q has %d bytes, at most %d", name, size, MaxVariable)
	case e.size > MaxSize:
		e.excess = fmt.Errorf("variable %q: with it the environment has more than %d bytes", name, MaxSize)
	}
	e.vars[name] = value
}

// check refuses what no process can have in its environment.
func check(name, value string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("the name must not be empty or contain %q or a zero byte", "=")
	case strings.Contains(value, "\x00"):
		return errors.New("the value contains a zero byte")
	}
	return nil
}

// set sets a variable of the task that has a value.
func (e *Env) set(name, value string) {
	if value != "" {
		e.put(name, strings.ReplaceAll(value, "\x00", "_"))
	}
}

func (e *Env) addAlloc(a *cluster.Allocation, g *cluster.TaskGroup) {
	if a == nil {
		return
	}
	e.set("NOMAD_ALLOC_ID", string(a.ID))
	e.set("NOMAD_SHORT_ALLOC_ID", string(a.ID)[:min(8, len(a.ID))])
	e.set("NOMAD_ALLOC_NAME", a.Name)
	if open := strings.LastIndexByte(a.Name, '['); open >= 0 {
		if index, err := strconv.Atoi(strings.TrimSuffix(a.Name[open+1:], "]")); err == nil {
			e.set("NOMAD_ALLOC_INDEX", strconv.Itoa(index))
		}
	}
	e.set("NOMAD_GROUP_NAME", a.TaskGroup)
	e.set("NOMAD_JOB_ID", string(a.JobID))
	e.set("NOMAD_JOB_NAME", string(a.JobID))
	e.set("NOMAD_NAMESPACE", string(a.Namespace))
	if a.Job != nil {
		e.addMeta(a.Job.Meta)
	}
	if g != nil {
		e.addMeta(g.Meta)
	}
}

// addPorts adds the variables of ports. Those of other tasks come first, so that no name of a task hides the
// variables of the task itself.
func (e *Env) addPorts(a *cluster.Allocation, t *cluster.Task) {
	if a == nil || a.Ports == nil {
		return
	}
	set := func(kind, name string, port int) {
		e.set("NOMAD_"+kind+"PORT_"+name, strconv.Itoa(port))
		e.set("NOMAD_"+kind+"IP_"+name, a.Ports.IP)
		e.set("NOMAD_"+kind+"ADDR_"+name, net.JoinHostPort(a.Ports.IP, strconv.Itoa(port)))
	}
	own := func(p cluster.AssignedPort) {
		name, inside := cluster.VariableName(p.Label), p.Number
		if p.To != 0 {
			inside = p.To
		}
		set("HOST_", name, p.Number)
		set("ALLOC_", name, inside)
		set("", name, p.Number)
		e.set("NOMAD_PORT_"+name, strconv.Itoa(inside))
	}
	for _, p := range a.Ports.All {
		if p.Task != "" && (t == nil || p.Task != t.Name) {
			set("", cluster.VariableName(p.Task)+"_"+cluster.VariableName(p.Label), p.Number)
		}
	}
	for _, p := range a.Ports.All {
		if p.Task == "" {
			own(p)
		}
	}
	for _, p := range a.Ports.All {
		if p.Task != "" && t != nil && p.Task == t.Name {
			own(p)
		}
	}
}

func (e *Env) addTask(t *cluster.Task) {
	e.set("NOMAD_TASK_NAME", t.Name)
	if t.Resources.CPU > 0 {
		e.set("NOMAD_CPU_LIMIT", strconv.FormatInt(t.Resources.CPU, 10))
	}
	if t.Resources.MemoryMB > 0 {
		e.set("NOMAD_MEMORY_LIMIT", strconv.FormatInt(t.Resources.MemoryMB, 10))
	}
	if t.MemoryMaxMB > 0 {
		e.set("NOMAD_MEMORY_MAX_LIMIT", strconv.FormatInt(t.MemoryMaxMB, 10))
	}
	e.addMeta(t.Meta)
}

// addMeta adds the variables of one place, without the keys that are for the servers. Two keys may have the same
// variable: the greater key wins.
func (e *Env) addMeta(meta map[string]string) {
	meta = cluster.TaskMeta(meta)
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		name := cluster.VariableName(key)
		value := strings.ReplaceAll(meta[key], "\x00", "_")
		e.put("NOMAD_META_"+name, value)
		e.put("NOMAD_META_"+strings.ToUpper(name), value)
	}
}

// Map returns the variables of the task, by name. The caller owns the map.
func (e *Env) Map() map[string]string { return maps.Clone(e.vars) }

// List returns the variables as "name=value", by name, for an [os/exec.Cmd].
func (e *Env) List() []string {
	list := make([]string, 0, len(e.vars))
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		list = append(list, name+"="+e.vars[name])
	}
	return list
}

// Lookup returns the value of a variable of a text, such as attr.kernel.name. It is a [variables.Lookup].
func (e *Env) Lookup(variable string) (string, bool) {
	if name, ok := strings.CutPrefix(variable, "env."); ok {
		value, ok := e.vars[name]
		return value, ok
	}
	if variable == "node.region" {
		return e.region, e.region != ""
	}
	if e.node != nil {
		if value, ok := variables.OfNode(e.node, variable); ok {
			return value, true
		}
	}
	value, ok := e.vars[variable]
	return value, ok
}

// Interpolate replaces the variables of a text, for example of a user. See [variables.Interpolate].
func (e *Env) Interpolate(text string) (string, error) { return variables.Interpolate(text, e.Lookup) }
