//race:skip one goroutine
package taskenv_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/taskenv"
)

// source is a task of a real job.
func source() taskenv.Source {
	task := &cluster.Task{
		Name: "web", Resources: cluster.Resources{CPU: 500, MemoryMB: 256}, MemoryMaxMB: 512, Cores: 3,
		Env:  map[string]string{"PORT": "80", "WHERE": "${node.datacenter}/${attr.kernel.name}", "DATA": "${NOMAD_ALLOC_DIR}/data"},
		Meta: map[string]string{"team-name": "task", "b": "task", "nodedrain.x": "task"},
	}
	group := &cluster.TaskGroup{Name: "front", Meta: map[string]string{"b": "group", "c.d": "group", cluster.MetaMaxSurge: "1"}, Tasks: []*cluster.Task{task}}
	return taskenv.Source{
		Node: &cluster.Node{
			ID: "node-1", Name: "host-1", Datacenter: "dc1", NodeClass: "big", NodePool: "default",
			Attributes: map[string]string{"kernel.name": "linux", "empty": "", "unique.cgroup.parent": "nomad.slice"}, Meta: map[string]string{"rack": "r1"},
			Drivers: map[string]*cluster.DriverInfo{"raw_exec": {Attributes: map[string]string{"driver.raw_exec.version": "1.2"}}, "gone": nil},
		},
		Region: "global",
		Alloc: &cluster.Allocation{
			ID: "4f1b5b3e-0000-4000-8000-000000000001", Name: "shop.front[3]", Namespace: "default", JobID: "shop", TaskGroup: "front",
			Cores: &cluster.AssignedCores{All: []cluster.TaskCores{{Task: "beside", Cores: cluster.Cores{0}}, {Task: "web", Cores: cluster.Cores{1, 2, 4}}}},
			Job:   &cluster.Job{ID: "shop", Meta: map[string]string{"a": "job", "b": "job", "nodedrain.x": "job"}, TaskGroups: []*cluster.TaskGroup{group}},
		},
		Group: group, Task: task,
		Dirs: taskenv.DirsOf(driver.FSNone, "/data/4f1b", "/data/4f1b/web"),
	}
}

// The environment of a task, and nothing of the client's own.
func TestNew(t *testing.T) {
	t.Setenv("SECRET_OF_THE_CLIENT", "x")
	e, err := taskenv.New(source())
	must.NoError(t, err)
	must.Eq(t, strings.Split(`DATA=/data/4f1b/alloc/data
NOMAD_ALLOC_DIR=/data/4f1b/alloc
NOMAD_ALLOC_ID=4f1b5b3e-0000-4000-8000-000000000001
NOMAD_ALLOC_INDEX=3
NOMAD_ALLOC_NAME=shop.front[3]
NOMAD_CPU_CORES=1-2,4
NOMAD_CPU_LIMIT=500
NOMAD_DC=dc1
NOMAD_GROUP_NAME=front
NOMAD_JOB_ID=shop
NOMAD_JOB_NAME=shop
NOMAD_MEMORY_LIMIT=256
NOMAD_MEMORY_MAX_LIMIT=512
NOMAD_META_A=job
NOMAD_META_B=task
NOMAD_META_C_D=group
NOMAD_META_TEAM_NAME=task
NOMAD_META_a=job
NOMAD_META_b=task
NOMAD_META_c_d=group
NOMAD_META_team_name=task
NOMAD_NAMESPACE=default
NOMAD_PARENT_CGROUP=nomad.slice
NOMAD_REGION=global
NOMAD_SECRETS_DIR=/data/4f1b/web/secrets
NOMAD_SHORT_ALLOC_ID=4f1b5b3e
NOMAD_TASK_DIR=/data/4f1b/web/local
NOMAD_TASK_NAME=web
PORT=80
WHERE=dc1/linux`, "\n"), e.List())
	must.MapLen(t, 30, e.Map())
	e.Map()["PORT"] = "changed"
	must.Eq(t, "80", e.Map()["PORT"])
}

// The scheduler expects the variables that the client sets.
func TestNew_expected(t *testing.T) {
	t.Parallel()
	s := source()
	s.Task.Env, s.Endpoint, s.Task.CSIPlugin = nil, "/csi.sock", &cluster.CSIPlugin{}
	e, err := taskenv.New(s)
	must.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(e.Map())) {
		must.True(t, name == "NOMAD_PARENT_CGROUP" || variables.OfTask(s.Alloc.Job, s.Group, s.Task, name), must.Sprint(name))
	}
	must.False(t, variables.OfTask(s.Alloc.Job, s.Group, s.Task, "NOMAD_META_NODEDRAIN_X"))
}

// The index is the number in the last brackets of the name. Bug: a bracket in the name of the job or of the group hid it.
func TestNew_indexAfterABracket(t *testing.T) {
	t.Parallel()
	s := source()
	s.Alloc.Name = "shop[eu].front[b][3]"
	e, err := taskenv.New(s)
	must.NoError(t, err)
	must.Eq(t, "3", e.Map()["NOMAD_ALLOC_INDEX"])
}

// The job wins over the client, and devices win over the job.
func TestNew_Order(t *testing.T) {
	t.Parallel()
	s := source()
	s.Task.Env = map[string]string{"NOMAD_DC": "mine", "GPU": "none"}
	s.Devices = map[string]string{"GPU": "0,1"}
	e, err := taskenv.New(s)
	must.NoError(t, err)
	must.Eq(t, "mine", e.Map()["NOMAD_DC"])
	must.Eq(t, "0,1", e.Map()["GPU"])
}

// A source with nothing in it has no variables.
func TestNew_Empty(t *testing.T) {
	t.Parallel()
	e, err := taskenv.New(taskenv.Source{})
	must.NoError(t, err)
	must.SliceEmpty(t, e.List())
	e, err = taskenv.New(taskenv.Source{Node: &cluster.Node{}, Alloc: &cluster.Allocation{Name: "x]["}, Group: &cluster.TaskGroup{}, Task: &cluster.Task{}})
	must.NoError(t, err)
	must.Eq(t, []string{"NOMAD_ALLOC_NAME=x]["}, e.List())
}

// A task does not start with a variable that means nothing.
func TestNew_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ name, value, expected string }{
		"an unknown variable":             {"A", "${attr.no.such}", `task web: variable "A": there is no variable ${attr.no.such}`},
		"another variable of the job":     {"A", "${PORT}", "there is no variable ${PORT}"},
		"a variable of the client":        {"A", `${env["PATH"]}`, "there is no variable"},
		"no closing brace":                {"A", "${x", "no closing brace"},
		"an empty name":                   {"", "x", "must not be empty"},
		"a name with an equals sign":      {"A=B", "x", "must not be empty or contain"},
		"a zero byte":                     {"A", "x\x00y", "zero byte"},
		"a path of the client in a value": {"A", "${HOME}", "there is no variable ${HOME}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source()
			s.Task.Env = map[string]string{"PORT": "80", c.name: c.value}
			_, err := taskenv.New(s)
			must.ErrorContains(t, err, c.expected)
		})
	}
}

// The environment is bounded. One that fits exactly is whole.
func TestNew_TooMuch(t *testing.T) {
	t.Parallel()
	s := source()
	s.Task.Env = nil
	e, err := taskenv.New(s)
	must.NoError(t, err)
	base := 0
	for name, value := range e.Map() {
		base += len(name) + len(value)
	}
	const part = 64 << 10
	s.Node.Meta["part"] = strings.Repeat("x", part)
	s.Task.Env = map[string]string{}
	for i := range 15 {
		s.Task.Env[fmt.Sprintf("A%02d", i)] = "${meta.part}"
	}
	rest := strings.Repeat("x", taskenv.MaxSize-base-15*(part+len("A00"))-len("B"))
	s.Task.Env["B"] = rest
	e, err = taskenv.New(s)
	must.NoError(t, err)
	must.Eq(t, s.Node.Meta["part"]+rest, e.Map()["A14"]+e.Map()["B"])

	s.Task.Env["NOMAD_DC"] = "dc2" // replaces a value of the same length
	_, err = taskenv.New(s)
	must.NoError(t, err)
	s.Task.Env["B"] += "x"
	_, err = taskenv.New(s)
	must.EqError(t, err, `environment of task web: variable "B": with it the environment has more than 1048576 bytes`)
	s.Task.Env["B"], s.Devices = rest, map[string]string{"GPU": "0"}
	_, err = taskenv.New(s)
	must.ErrorContains(t, err, `variable "GPU": with it`)
	s.Task.Env, s.Devices = map[string]string{"A": strings.Repeat("${meta.part}", 16) + "x"}, nil
	_, err = taskenv.New(s)
	must.ErrorContains(t, err, `has more than 1048576 bytes`)
	s.Task.Env = nil
	for i := range 8 { // as they are and in capital letters
		s.Task.Meta[fmt.Sprint("large", i)] = s.Node.Meta["part"]
	}
	_, err = taskenv.New(s)
	must.ErrorContains(t, err, `variable "NOMAD_META_LARGE7": with it`)
	s.Task, s.Group.Meta = nil, s.Task.Meta
	_, err = taskenv.New(s)
	must.ErrorContains(t, err, "with it the environment has more than")
}

// The kernel starts no process with a longer variable, and does not name it: "argument list too long".
func TestNew_longestVariable(t *testing.T) {
	t.Parallel()
	s := source()
	s.Node.Meta["part"] = strings.Repeat("x", 64<<10-2)
	s.Task.Env = map[string]string{"A": "${meta.part}${meta.part}x"}
	e, err := taskenv.New(s)
	must.NoError(t, err)
	must.Eq(t, 131071, len("A="+e.Map()["A"]))

	s.Task.Env["A"] += "x"
	_, err = taskenv.New(s)
	must.EqError(t, err, `environment of task web: variable "A" has 131072 bytes, at most 131071`)
}

func TestDirsOf(t *testing.T) {
	t.Parallel()
	inside := taskenv.Dirs{Alloc: "/alloc", Task: "/local", Secrets: "/secrets"}
	host := taskenv.Dirs{Alloc: "/a/alloc", Task: "/a/web/local", Secrets: "/a/web/secrets"}
	for isolation, expected := range map[driver.FSIsolation]taskenv.Dirs{
		driver.FSNone: host, driver.FSUnveil: host, driver.FSChroot: inside, driver.FSImage: inside,
	} {
		must.Eq(t, expected, taskenv.DirsOf(isolation, "/a", "/a/web"))
	}
}

func TestEnv_Interpolate(t *testing.T) {
	t.Parallel()
	e, err := taskenv.New(source())
	must.NoError(t, err)
	for text, expected := range map[string]string{
		"user-${meta.rack}":                         "user-r1",
		`${meta["rack"]}`:                           "r1",
		"${attr.kernel.name}${attr.empty}":          "linux",
		"${driver.raw_exec.version}":                "1.2",
		"${attr.driver.raw_exec.version}":           "1.2",
		"${node.unique.id} ${node.unique.name}":     "node-1 host-1",
		"${node.class} ${node.pool} ${node.region}": "big default global",
		`${env["PORT"]} ${env.PORT} ${PORT}`:        "80 80 80",
		"${NOMAD_TASK_NAME} ${ NOMAD_DC }":          "web dc1",
		"$${NOMAD_DC} $NOMAD_DC":                    "${NOMAD_DC} $NOMAD_DC",
	} {
		got, err := e.Interpolate(text)
		must.NoError(t, err)
		must.Eq(t, expected, got)
	}
	for _, text := range []string{"${}", "${node.unique.secret}", "${env.PATH}", "${attr}", "${"} {
		_, err := e.Interpolate(text)
		must.Error(t, err, must.Sprint(text))
	}
}

// lookup has the variables of the tests of Interpolate.
func lookup(name string) (string, bool) {
	value, ok := map[string]string{"attr.kernel.name": "linux", "NOMAD_TASK_DIR": "/t", "empty": "", "quoted": `"${x}\`}[name]
	return value, ok
}

func TestInterpolate(t *testing.T) {
	t.Parallel()
	for text, expected := range map[string]string{
		"":                             "",
		"no variable: $x {y} $":        "no variable: $x {y} $",
		"${attr.kernel.name}":          "linux",
		"a${NOMAD_TASK_DIR}b${empty}c": "a/tbc",
		"$${x} $$${x} ${quoted}":       `${x} $${x} "${x}\`,
	} {
		got, err := variables.Interpolate(text, lookup)
		must.NoError(t, err)
		must.Eq(t, expected, got)
	}
	_, err := variables.Interpolate("${x}", nil)
	must.EqError(t, err, "there is no variable ${x}")
}

// A short text with a long value has a bound.
func TestInterpolate_TooMuch(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("x", variables.MaxText/4)
	long := func(string) (string, bool) { return value, true }
	got, err := variables.Interpolate(strings.Repeat("${a}", 4), long)
	must.NoError(t, err)
	must.Eq(t, variables.MaxText, len(got))
	for _, text := range []string{"${a}${a}${a}${a}x", "x${a}${a}${a}${a}", strings.Repeat("${a}", 1<<14), "$${" + value + "${a}${a}${a}"} {
		_, err := variables.Interpolate(text, long)
		must.ErrorContains(t, err, "has more than 1048576 bytes with the values of its variables")
		must.Less(t, 200, len(err.Error()))
	}
}

// No text makes Interpolate panic. A text without "${" stays as it is, and each variable is looked up
// once for each of its places.
func FuzzInterpolate(f *testing.F) {
	for _, text := range []string{"", "$", "${", "${}", "$${", "a${x}b", `${env["X"]}`, "${${x}}", "}${x", "$$${x}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names := 0
		got, err := variables.Interpolate(text, func(string) (string, bool) { names++; return "${value}", true })
		must.LessEq(t, strings.Count(text, "${"), names)
		if !strings.Contains(text, "${") && len(text) <= variables.MaxText {
			must.NoError(t, err)
			must.Eq(t, text, got)
		}
		must.LessEq(t, variables.MaxText, len(got))
		if err != nil {
			must.True(t, strings.Contains(err.Error(), "closing brace") || len(text) > variables.MaxText/len("${value}"), must.Sprint(err))
			return
		}
		must.GreaterEq(t, names, strings.Count(got, "${value}"))
	})
}

// A task sees the ports of its group and its own, and those that other tasks request. The driver's port differs
// from that of the host only if it maps the port.
func TestNew_ports(t *testing.T) {
	t.Parallel()
	alloc := &cluster.Allocation{ID: "a", Ports: &cluster.AssignedPorts{IP: "fd00::1", All: []cluster.AssignedPort{
		{Label: "http", Number: 20001}, {Label: "my-db", Number: 20002, To: 5432},
		{Task: "web", Label: "http", Number: 20003}, {Task: "side-car", Label: "admin", Number: 20004},
	}}}
	task := &cluster.Task{Name: "web", Env: map[string]string{"LISTEN": "${NOMAD_ADDR_http}", "PEER": "${env[\"NOMAD_PORT_side_car_admin\"]}"}}
	env, err := taskenv.New(taskenv.Source{Alloc: alloc, Task: task})
	must.NoError(t, err)
	got := env.Map()
	for name, want := range map[string]string{
		"NOMAD_PORT_http": "20003", "NOMAD_IP_http": "fd00::1", "NOMAD_ADDR_http": "[fd00::1]:20003", "NOMAD_HOST_PORT_http": "20003",
		"NOMAD_PORT_my_db": "5432", "NOMAD_ALLOC_PORT_my_db": "5432", "NOMAD_ALLOC_ADDR_my_db": "[fd00::1]:5432", "NOMAD_HOST_PORT_my_db": "20002",
		"NOMAD_HOST_IP_my_db": "fd00::1", "NOMAD_HOST_ADDR_my_db": "[fd00::1]:20002", "NOMAD_ADDR_my_db": "[fd00::1]:20002",
		"NOMAD_PORT_side_car_admin": "20004", "NOMAD_IP_side_car_admin": "fd00::1", "NOMAD_ADDR_side_car_admin": "[fd00::1]:20004",
		"LISTEN": "[fd00::1]:20003", "PEER": "20004",
	} {
		must.Eq(t, want, got[name], must.Sprint(name))
	}
	_, is := got["NOMAD_PORT_admin"]
	must.False(t, is, must.Sprint("the port of another task"))
	text, err := env.Interpolate("-port=${NOMAD_PORT_http} -db=${NOMAD_HOST_ADDR_my_db}")
	must.NoError(t, err)
	must.Eq(t, "-port=20003 -db=[fd00::1]:20002", text)
}
