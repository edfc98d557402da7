//race:skip one goroutine
package cluster_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// serving is a job with a service of the group and one of the task, each with a check.
func serving() *cluster.Job {
	up := cluster.ServiceCheck{Name: "up", Type: cluster.CheckHTTP, Path: "/", Interval: time.Second, Timeout: time.Second}
	j := &cluster.Job{
		Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 50, NodePool: cluster.DefaultNodePool,
		TaskGroups: []*cluster.TaskGroup{{
			Name: "g", Count: 2, Ports: []cluster.PortRequest{{Label: "http"}},
			Services: []cluster.Service{{Name: "web", PortLabel: "http", Tags: []string{"a"}, Checks: []cluster.ServiceCheck{up}}},
			Tasks: []*cluster.Task{
				{
					Name: "main", Driver: "mock", Ports: []cluster.PortRequest{{Label: "own"}},
					Services: []cluster.Service{{Name: "api", PortLabel: "own", Checks: []cluster.ServiceCheck{
						{Name: "script", Type: cluster.CheckScript, Command: "/bin/true", Interval: time.Second, Timeout: time.Second},
					}}},
				},
				{Name: "beside", Driver: "mock"},
			},
		}},
	}
	j.Canonicalize()
	return j
}

// What is wrong with a service is refused, with its place.
func TestServices_validate(t *testing.T) {
	t.Parallel()
	const web, up, api = `Service "web": `, `Service "web": check "up": `, `Task "main": service "api": `
	for name, test := range map[string]struct {
		edit func(g *cluster.TaskGroup, web *cluster.Service, up *cluster.ServiceCheck)
		err  string
	}{
		"nothing":           {func(*cluster.TaskGroup, *cluster.Service, *cluster.ServiceCheck) {}, ""},
		"no name":           {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Name = "" }, `Service "": the name must have 1 to 63 letters`},
		"a name with a dot": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Name = "a.b" }, `Service "a.b": the name must have`},
		"a long name": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			s.Name = strings.Repeat("x", 64)
		}, "the name must have"},
		"a hyphen at an end": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Name = "web-" }, "the name must have"},
		"a variable": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			s.Name = "x-${NOMAD_GROUP_NAME}"
		}, ""},
		"a number as port": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "8080" }, ""},
		"port 0":           {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "0" }, web + "a port must be between [1, 65535] but found 0"},
		"port 65536":       {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "65536" }, web + "a port must be between"},
		"another label":    {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "x" }, web + `the group has no port with the label "x"`},
		"a task's label":   {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "own" }, ""},
		"another task's label": {func(g *cluster.TaskGroup, _ *cluster.Service, _ *cluster.ServiceCheck) {
			g.Tasks[1].Services, g.Tasks[0].Services = g.Tasks[0].Services, nil
		}, `Task "beside": service "api": the group has no port with the label "own"`},
		"twice": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			g.Services = append(g.Services, *s)
		}, web + "it is defined twice with the same port"},
		"twice with two ports": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			g.Services = append(g.Services, *s)
			g.Services[1].PortLabel = "80"
		}, ""},
		"of a group and of a task": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			g.Tasks[0].Services = append(g.Tasks[0].Services, *s)
		}, ""},
		"an address":            {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "${meta.public}" }, ""},
		"a line as address":     {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "a\nb" }, web + "invalid address"},
		"a space in an address": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "my host" }, web + `invalid address: "my host" is neither an IP address nor the name of a host`},
		"a port in an address":  {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "db:5432" }, web + `invalid address: "db:5432" is neither`},
		"a URL as address":      {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "http://db" }, web + `invalid address: "http://db" is neither`},
		"IPv6 in brackets":      {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Address = "[::1]" }, up + `invalid address: "[::1]" is neither`},
		"a long address": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			s.Address = strings.Repeat("x", 254)
		}, web + "invalid address"},
		"IPv6": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Address = "fe80::1%eth0" }, ""},
		"a name with a dot's end": {func(_ *cluster.TaskGroup, s *cluster.Service, c *cluster.ServiceCheck) {
			s.Address, c.Address, c.ServerName = "db_1.example.", "127.0.0.1", "db.example"
		}, ""},
		"a server's name": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.ServerName = "a b" }, up + "invalid tls_server_name"},
		"a line in a tag": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			s.Tags = []string{"a", "b\nc"}
		}, web + `the tag "b\nc" contains a control character`},
		"a path's fragment": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Path = "/up#now" }, up + `no request can have the path "/up#now": write %25 for % and %23 for #`},
		"a bad escape":      {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Path = "/50%" }, up + `no request can have the path "/50%"`},
		"a good escape": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Path = "/50%25?a=%23&b=${x}"
		}, ""},
		"a header's name": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Headers = map[string][]string{"X Y": {"a"}}
		}, up + `invalid name of a header: "X Y"`},
		"a header's value": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Headers = map[string][]string{"X": {"\x01"}}
		}, up + `a value of the header "X" contains a control character`},
		"a NUL in a script": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Type, c.Command, c.TaskName, c.Args = cluster.CheckScript, "/bin/true", "main", []string{"\x00"}
		}, up + "the command or one of its args contains a NUL"},
		"too many tags":       {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.Tags = make([]string, 101) }, web + "it has at most 100 tags but found 101"},
		"a task":              {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.TaskName = "beside" }, ""},
		"a task that is none": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.TaskName = "x" }, web + `the group has no task "x"`},
		"another task": {func(g *cluster.TaskGroup, _ *cluster.Service, _ *cluster.ServiceCheck) {
			g.Tasks[0].Services[0].TaskName = "beside"
		}, api + `the service of a task cannot belong to task "beside"`},
		"no name of a check": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Name = "" }, "the check needs a name"},
		"a check twice": {func(_ *cluster.TaskGroup, s *cluster.Service, c *cluster.ServiceCheck) {
			s.Checks = append(s.Checks, *c)
		}, web + `check "up" is defined twice`},
		"no interval":          {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Interval = 0 }, up + "interval and timeout must be at least 1s but found 0s and 1s"},
		"a short timeout":      {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Timeout = time.Millisecond }, up + "interval and timeout must be at least"},
		"a negative threshold": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.SuccessBeforePassing = -1 }, up + "success_before_passing"},
		"another on_update":    {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.OnUpdate = "x" }, up + `invalid on_update: "x"`},
		"a path with a space":  {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Path = "/a b" }, up + "the path has a space"},
		"a task that ends": {func(g *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			g.Tasks, c.TaskName = append(g.Tasks, &cluster.Task{Name: "init", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart}}), "init"
		}, up + `a check needs a task that runs as long as its allocation, and task "init" does not`},
		// Bug: the catalogue listed it after the task had ended.
		"a service of a task that ends": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			g.Tasks = append(g.Tasks, &cluster.Task{Name: "init", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart}, Services: []cluster.Service{{Name: "init"}}})
		}, `Task "init": service "init": the task does not run as long as its allocation, so it can have no service`},
		"a service of a sidecar": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			g.Tasks = append(g.Tasks, &cluster.Task{Name: "proxy", Driver: "mock", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}, Services: []cluster.Service{{Name: "proxy"}}})
		}, ""},
		"another type":        {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Type = "grpc" }, up + `invalid type "grpc"`},
		"http without a port": {func(_ *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { s.PortLabel = "" }, up + "a check of type http needs a port"},
		"a port of the check": {func(_ *cluster.TaskGroup, s *cluster.Service, c *cluster.ServiceCheck) {
			s.PortLabel, c.PortLabel = "", "http"
		}, ""},
		"a path without a slash": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Path = "health" }, up + "the path must begin with /"},
		"a method":               {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Method = "HEAD" }, ""},
		"two words as method":    {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) { c.Method = "GET /" }, up + "invalid method"},
		"a header": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Headers = map[string][]string{"Host": {"a"}}
		}, ""},
		"two headers in one": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Headers = map[string][]string{"A": {"a\r\nB: b"}}
		}, up + `a value of the header "A" contains a control character`},
		"tcp without a port": {func(_ *cluster.TaskGroup, s *cluster.Service, c *cluster.ServiceCheck) {
			s.PortLabel, c.Type = "", cluster.CheckTCP
		}, up + "a check of type tcp needs a port"},
		"a script without a command": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Type, c.TaskName = cluster.CheckScript, "main"
		}, up + "a check of type script needs a command"},
		"a script without a task": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Type, c.Command = cluster.CheckScript, "/bin/true"
		}, up + "a check of type script needs a task, because the group has several"},
		"a limit of 0": {func(_ *cluster.TaskGroup, _ *cluster.Service, c *cluster.ServiceCheck) {
			c.Restart = &cluster.CheckRestart{}
		}, up + "check_restart needs a limit"},
		"too many services": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) { manyServices(g, s, 101) }, "A group has at most 100 services with 100 checks but found 102 and 102"},
		"many reasons": {func(g *cluster.TaskGroup, s *cluster.Service, _ *cluster.ServiceCheck) {
			s.PortLabel = "x"
			manyServices(g, s, 50)
		}, "more is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := serving()
			g := j.TaskGroups[0]
			test.edit(g, &g.Services[0], &g.Services[0].Checks[0])
			if err := j.Validate(); test.err == "" {
				must.NoError(t, err)
			} else {
				must.ErrorContains(t, err, test.err)
			}
		})
	}
}

func manyServices(g *cluster.TaskGroup, like *cluster.Service, count int) {
	s := *like
	g.Services = nil
	for i := range count {
		s.Name = "web" + strconv.Itoa(i)
		g.Services = append(g.Services, s)
	}
}

// Checks are for jobs that run until they are stopped. Services are for all.
func TestServices_ofBatchJobs(t *testing.T) {
	t.Parallel()
	j := serving()
	j.Type, j.TaskGroups[0].Migrate = cluster.JobBatch, nil
	must.ErrorContains(t, j.Validate(), `Service "web": checks are for service and system jobs, and the job has type "batch"`)
	for _, s := range j.TaskGroups[0].ServiceDefinitions() {
		s.Checks = nil
	}
	must.NoError(t, j.Validate())
}

// A change of services and of checks restarts no task, and runs no ended one again. A change of a port does.
func TestServices_updateInPlace(t *testing.T) {
	t.Parallel()
	was := serving()
	for name, test := range map[string]struct {
		edit    func(g *cluster.TaskGroup)
		inPlace bool
	}{
		"a tag":           {func(g *cluster.TaskGroup) { g.Services[0].Tags = []string{"b"} }, true},
		"a check":         {func(g *cluster.TaskGroup) { g.Tasks[0].Services[0].Checks[0].Interval = time.Minute }, true},
		"no services":     {func(g *cluster.TaskGroup) { g.Services, g.Tasks[0].Services = nil, nil }, true},
		"another service": {func(g *cluster.TaskGroup) { g.Tasks[1].Services = []cluster.Service{{Name: "x"}} }, true},
		"the health check": {func(g *cluster.TaskGroup) {
			g.Update, g.Migrate.HealthCheck = &cluster.UpdateStrategy{HealthCheck: cluster.HealthTaskStates}, cluster.HealthTaskStates
		}, true},
		"a port": {func(g *cluster.TaskGroup) {
			g.Ports[0].Label, g.Services[0].PortLabel = "other", "other"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := was.Copy()
			test.edit(is.TaskGroups[0])
			must.False(t, was.SameWork(is), must.Sprint("it is another version"))
			must.Eq(t, test.inPlace, cluster.RunsLike(was, is, "g"))
			a := &cluster.Allocation{Job: was, TaskGroup: "g", DesiredStatus: cluster.DesiredRun}
			must.Eq(t, test.inPlace, is.GivesServices(a))
			must.False(t, was.Copy().GivesServices(a))
			must.True(t, is.IsWorkOf(&cluster.Allocation{Job: was, TaskGroup: "g"}) || !test.inPlace)
		})
	}
}

// Checks decide about health unless each block of the group says otherwise.
func TestTaskGroup_ChecksDecide(t *testing.T) {
	t.Parallel()
	const byChecks, byTasks = cluster.HealthChecks, cluster.HealthTaskStates
	for name, test := range map[string]struct {
		update, migrate cluster.HealthCheck
		system          bool
		decide          bool
	}{
		"by default":                     {"", "", false, true},
		"checks":                         {byChecks, byChecks, false, true},
		"only rollouts by tasks":         {byTasks, byChecks, false, true},
		"only drains by tasks":           {byChecks, byTasks, false, true},
		"both by tasks":                  {byTasks, byTasks, false, false},
		"by tasks, without drains' pace": {byTasks, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &cluster.Service{Name: "web", Checks: []cluster.ServiceCheck{{OnUpdate: cluster.CheckIgnored}, {}}}
			g := &cluster.TaskGroup{Update: &cluster.UpdateStrategy{HealthCheck: test.update}, Migrate: &cluster.MigrateStrategy{HealthCheck: test.migrate}}
			if test.system {
				g.Migrate = nil
			}
			must.Eq(t, test.decide, g.ChecksDecide())
			must.Eq(t, test.decide, s.Decides(g))
			s.Checks = s.Checks[:1]
			must.False(t, s.Decides(g))
		})
	}
}

// The validation, the catalogue and the checks find the same port: that of the owner, of the service's task, of the
// group, and of any other task. A label that is a number wins over the number: once the check ran at another address
// than the catalogue listed.
func TestServicePort(t *testing.T) {
	t.Parallel()
	ports := &cluster.AssignedPorts{IP: "10.0.0.1", All: []cluster.AssignedPort{
		{Label: "http", Number: 1}, {Label: "group", Number: 2}, {Task: "a", Label: "http", Number: 3}, {Task: "a", Label: "own", Number: 4},
		{Task: "a", Label: "8080", Number: 5}, {Task: "b", Label: "own", Number: 6},
	}}
	g := &cluster.TaskGroup{Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "a", Driver: "mock"}, {Name: "b", Driver: "mock"}}}
	for _, p := range ports.All {
		r := cluster.PortRequest{Label: p.Label}
		switch p.Task {
		case "":
			g.Ports = append(g.Ports, r)
		case "a":
			g.Tasks[0].Ports = append(g.Tasks[0].Ports, r)
		default:
			g.Tasks[1].Ports = append(g.Tasks[1].Ports, r)
		}
	}
	for _, test := range []struct {
		owner, task, label string
		ip                 string
		number             int
		is                 bool
	}{
		{"", "", "http", "10.0.0.1", 1, true},
		{"", "a", "http", "10.0.0.1", 1, true},
		{"", "", "own", "10.0.0.1", 4, true},
		{"", "b", "own", "10.0.0.1", 6, true},
		{"", "b", "8080", "10.0.0.1", 5, true},
		{"a", "", "http", "10.0.0.1", 3, true},
		{"a", "a", "group", "10.0.0.1", 2, true},
		{"a", "", "8080", "10.0.0.1", 5, true},
		{"b", "", "http", "10.0.0.1", 1, true},
		{"b", "", "own", "10.0.0.1", 6, true},
		{"b", "", "8080", "", 8080, true},
		{"b", "", "99", "", 99, true},
		{"b", "", "none", "", 0, false},
	} {
		ip, number, is := ports.ServicePort(test.owner, test.task, test.label)
		must.Eq(t, []any{test.ip, test.number, test.is}, []any{ip, number, is}, must.Sprint(test))
		j := &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 50, NodePool: cluster.DefaultNodePool, TaskGroups: []*cluster.TaskGroup{g}}
		j = j.Copy()
		services := &j.TaskGroups[0].Services
		for _, task := range j.TaskGroups[0].Tasks {
			if task.Name == test.owner {
				services = &task.Services
			}
		}
		*services = []cluster.Service{{Name: "web", PortLabel: test.label, TaskName: test.task}}
		j.Canonicalize()
		if err := j.Validate(); test.is {
			must.NoError(t, err, must.Sprint(test))
		} else {
			must.ErrorContains(t, err, "the group has no port with the label", must.Sprint(test))
		}
	}
	_, number, is := (*cluster.AssignedPorts)(nil).ServicePort("", "", "80")
	must.True(t, is)
	must.Eq(t, 80, number)
}
