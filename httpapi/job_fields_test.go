package httpapi_test

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobfields"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// jobField is a field of the compatible API's job that has no fields of its own.
type jobField struct {
	path string
	// names are the parts of the path in HCL, empty if HCL has none.
	names []string
	of    reflect.Type
}

// jobFieldsOf returns the fields of a type, with paths as in the table.
func jobFieldsOf(of reflect.Type, path string, names []string) (all []jobField) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	element := of
	if of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		for element = of.Elem(); element.Kind() == reflect.Pointer; {
			element = element.Elem()
		}
	}
	switch {
	case element.Kind() != reflect.Struct:
		return []jobField{{path, names, of}}
	case of.Kind() == reflect.Slice:
		path += "[]"
	case of.Kind() == reflect.Map:
		path += "{}"
	}
	for i := range element.NumField() {
		f := element.Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		if name == "" {
			name = f.Tag.Get("mapstructure")
		}
		all = append(all, jobFieldsOf(f.Type, strings.TrimPrefix(path+"."+f.Name, "."), append(names[:len(names):len(names)], name))...)
	}
	return all
}

// tableRow is the row of the table for a field: its own, or that of a block around it.
func tableRow(table map[string]jobfields.Field, path string) (row jobfields.Field, is bool) {
	for parts := strings.Split(path, "."); len(parts) > 0; parts = parts[:len(parts)-1] {
		row, is = table[strings.Join(parts, ".")]
		if is && (row.Verdict != "" || len(parts) == strings.Count(path, ".")+1) {
			return row, row.Verdict != ""
		}
	}
	return row, false
}

// fieldOf returns the field of a job that the path names. With make, it makes what is missing on the way.
func fieldOf(v reflect.Value, path string, makes bool) (found reflect.Value, is bool) {
	for part := range strings.SplitSeq(path, ".") {
		name := strings.TrimRight(part, "[]{}")
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && !makes {
				return v, false
			}
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.FieldByName(name)
		switch {
		case strings.HasSuffix(part, "[]"):
			if v.Len() == 0 && !makes {
				return v, false
			}
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			v = v.Index(0)
		case strings.HasSuffix(part, "{}"):
			key := reflect.ValueOf("data")
			if !v.MapIndex(key).IsValid() && !makes {
				return v, false
			}
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			if !v.MapIndex(key).IsValid() {
				v.SetMapIndex(key, reflect.New(v.Type().Elem().Elem()))
			}
			v = v.MapIndex(key)
		}
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() && !makes {
			return v, false
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v, true
}

// chosen are the values of fields that take only some, by the end of the path. Those of other fields depend on
// the type alone. A value of a field with a warning or a refusal is one that needs it.
var chosen = []struct {
	path  string
	value any
}{
	{"CSIPluginConfig.Type", api.CSIPluginType("monolith")},
	{"Type", "batch"},
	{"Migrate.HealthyDeadline", 7 * time.Minute},
	{"Update.HealthyDeadline", 7 * time.Minute},
	{"ReschedulePolicy.DelayFunction", "fibonacci"},
	{"ReschedulePolicy.MaxDelay", 7 * time.Minute},
	{"ReschedulePolicy.Unlimited", false},
	{"Reschedule.DelayFunction", "fibonacci"},
	{"Reschedule.MaxDelay", 7 * time.Minute},
	{"Reschedule.Unlimited", false},
	{"Datacenters", []string{"dc2"}},
	{"NodePool", "other"},
	{"Config", map[string]any{"command": "true"}},
	{"Devices[].Constraints[].LTarget", "${device.vendor}"},
	{"Devices[].Affinities[].LTarget", "${device.vendor}"},
	{"Constraints[].LTarget", "${node.unique.name}"},
	{"Constraints[].Operand", "!="},
	{"Devices[].Affinities[].Operand", "!="},
	{"Devices[].Name", "nvidia/gpu"},
	{"Lifecycle.Hook", "poststop"},
	{"RestartPolicy.Interval", time.Hour},
	{"RestartPolicy.Mode", "delay"},
	{"KillSignal", "SIGUSR1"},
	{"LogConfig.Enabled", false},
	{"CSIPluginConfig.MountDir", "/other"},
	{"Volumes{}.Name", "data"},
	{"Volumes{}.AccessMode", "multi-node-multi-writer"},
	{"Volumes{}.AttachmentMode", "block-device"},
	{"VolumeMounts[].Destination", "/other"},
	{"VolumeMounts[].Volume", "data"},
	{"VolumeMounts[].PropagationMode", "host-to-task"},
	{"Disconnect.Reconcile", api.ReconcileOptionBestScore},
	{"PreventRescheduleOnLost", true},
	{"Disconnect.Replace", false},
	{"Services[].PortLabel", "8080"},
	{"Services[].TaskName", "main"},
	{"Services[].OnUpdate", "ignore"},
	{"Checks[].PortLabel", "8080"},
	{"Checks[].TaskName", "main"},
	{"Checks[].OnUpdate", "ignore"},
	{"Checks[].Path", "/health"},
	{"Checks[].Type", "grpc"},
}

// valueFor is a value of the field that is not its default.
func valueFor(f jobField) reflect.Value {
	for _, one := range chosen {
		if f.path == one.path || strings.HasSuffix(f.path, "."+one.path) {
			return reflect.ValueOf(one.value).Convert(f.of)
		}
	}
	v := reflect.New(f.of).Elem()
	switch f.of.Kind() {
	case reflect.String:
		v.SetString("value")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(7)
		if f.of == reflect.TypeFor[time.Duration]() {
			v.SetInt(int64(27 * time.Second))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(f.of, 1, 1))
		v.Index(0).Set(valueFor(jobField{of: f.of.Elem()}))
	case reflect.Map:
		v.Set(reflect.MakeMap(f.of))
		member := reflect.New(f.of.Elem()).Elem()
		if member.Kind() != reflect.Interface {
			member.Set(valueFor(jobField{of: f.of.Elem()}))
		} else {
			member.Set(reflect.ValueOf("value"))
		}
		v.SetMapIndex(reflect.ValueOf("key"), member)
	default:
		panic("a field of another kind: " + f.path)
	}
	return v
}

// plainJob is a job without a warning, with the rest of the block that the field is in.
func plainJob(id, path string) *api.Job {
	task := api.NewTask("main", "raw_exec")
	group := api.NewTaskGroup("main", 2).AddTask(task).AddTask(api.NewTask("beside", "raw_exec"))
	job := api.NewServiceJob(id, id, "global", 50).AddTaskGroup(group)
	job.Namespace = new("default")
	for _, one := range []struct {
		within string
		add    func()
	}{
		{"TaskGroups[].Volumes{}", func() {
			group.Volumes = map[string]*api.VolumeRequest{"data": {Type: "csi", Source: "disk", AccessMode: "single-node-writer", AttachmentMode: "file-system"}}
		}},
		{"TaskGroups[].Tasks[].VolumeMounts[]", func() {
			group.Volumes = map[string]*api.VolumeRequest{"data": {Type: "csi", Source: "disk", AccessMode: "single-node-writer", AttachmentMode: "file-system"}}
			task.VolumeMounts = []*api.VolumeMount{{Volume: new("data"), Destination: new("/data")}}
		}},
		{"TaskGroups[].Tasks[].Resources.Devices[]", func() { task.Resources = &api.Resources{Devices: []*api.RequestedDevice{{Name: "gpu"}}} }},
		{"TaskGroups[].Tasks[].Resources.Devices[].Constraints[]", func() {
			task.Resources.Devices[0].Constraints = []*api.Constraint{api.NewConstraint("${device.model}", "=", "a")}
		}},
		{"TaskGroups[].Tasks[].Resources.Devices[].Affinities[]", func() {
			task.Resources.Devices[0].Affinities = []*api.Affinity{api.NewAffinity("${device.model}", "=", "a", 20)}
		}},
		{"TaskGroups[].Networks[].ReservedPorts[]", func() {
			group.Networks = []*api.NetworkResource{{ReservedPorts: []api.Port{{Label: "http", Value: 80}}}}
		}},
		{"TaskGroups[].Networks[].DynamicPorts[]", func() { group.Networks = []*api.NetworkResource{{DynamicPorts: []api.Port{{Label: "http"}}}} }},
		{"TaskGroups[].Tasks[].Resources.Networks[].ReservedPorts[]", func() {
			task.Resources = &api.Resources{Networks: []*api.NetworkResource{{ReservedPorts: []api.Port{{Label: "http", Value: 80}}}}}
		}},
		{"TaskGroups[].Tasks[].Resources.Networks[].DynamicPorts[]", func() {
			task.Resources = &api.Resources{Networks: []*api.NetworkResource{{DynamicPorts: []api.Port{{Label: "http"}}}}}
		}},
		{"TaskGroups[].Services[]", func() { group.Services = plainServices() }},
		{"TaskGroups[].Services[].CheckRestart", func() { group.Services[0].CheckRestart = &api.CheckRestart{Limit: 2} }},
		{"TaskGroups[].Services[].Checks[].CheckRestart", func() { group.Services[0].Checks[0].CheckRestart = &api.CheckRestart{Limit: 2} }},
		{"TaskGroups[].Tasks[].Services[]", func() { task.Services = plainServices() }},
		{"TaskGroups[].Tasks[].Services[].CheckRestart", func() { task.Services[0].CheckRestart = &api.CheckRestart{Limit: 2} }},
		{"TaskGroups[].Tasks[].Services[].Checks[].CheckRestart", func() { task.Services[0].Checks[0].CheckRestart = &api.CheckRestart{Limit: 2} }},
		{"Constraints[]", func() { job.Constraints = []*api.Constraint{api.NewConstraint("${node.datacenter}", "=", "a")} }},
		{"TaskGroups[].Constraints[]", func() { group.Constraints = []*api.Constraint{api.NewConstraint("${node.datacenter}", "=", "a")} }},
		{"TaskGroups[].Tasks[].Constraints[]", func() { task.Constraints = []*api.Constraint{api.NewConstraint("${node.datacenter}", "=", "a")} }},
		{"TaskGroups[].Tasks[].Lifecycle", func() { task.Lifecycle = &api.TaskLifecycle{Hook: "prestart"} }},
		{"TaskGroups[].Tasks[].CSIPluginConfig", func() { task.CSIPluginConfig = &api.TaskCSIPluginConfig{ID: "disks", Type: "node"} }},
	} {
		if strings.HasPrefix(path, one.within+".") {
			one.add()
		}
	}
	return job
}

func plainServices() []*api.Service {
	return []*api.Service{{Name: "web", Provider: "nomad", PortLabel: "80", Checks: []api.ServiceCheck{
		{Name: "up", Type: "http", Path: "/", Interval: time.Minute, Timeout: time.Minute},
	}}}
}

// keptAs are the fields that come back in another place, or as another value.
var keptAs = map[string]struct {
	path  string
	value any
}{
	"Migrate.MaxParallel":                                         {"TaskGroups[].Migrate.MaxParallel", 7},
	"Migrate.MinHealthyTime":                                      {"TaskGroups[].Migrate.MinHealthyTime", 27 * time.Second},
	"Migrate.HealthyDeadline":                                     {"TaskGroups[].Migrate.HealthyDeadline", 7 * time.Minute},
	"Reschedule.Attempts":                                         {"TaskGroups[].ReschedulePolicy.Attempts", 7},
	"Reschedule.Interval":                                         {"TaskGroups[].ReschedulePolicy.Interval", 27 * time.Second},
	"Reschedule.Delay":                                            {"TaskGroups[].ReschedulePolicy.Delay", 27 * time.Second},
	"Reschedule.DelayFunction":                                    {"TaskGroups[].ReschedulePolicy.DelayFunction", "fibonacci"},
	"Reschedule.MaxDelay":                                         {"TaskGroups[].ReschedulePolicy.MaxDelay", 7 * time.Minute},
	"Reschedule.Unlimited":                                        {"TaskGroups[].ReschedulePolicy.Unlimited", false},
	"Update.MaxParallel":                                          {"TaskGroups[].Update.MaxParallel", 7},
	"Update.MinHealthyTime":                                       {"TaskGroups[].Update.MinHealthyTime", 27 * time.Second},
	"Update.HealthyDeadline":                                      {"TaskGroups[].Update.HealthyDeadline", 7 * time.Minute},
	"TaskGroups[].Services[].OnUpdate":                            {"TaskGroups[].Services[].Checks[].OnUpdate", "ignore"},
	"TaskGroups[].Services[].CheckRestart.Limit":                  {"TaskGroups[].Services[].Checks[].CheckRestart.Limit", 7},
	"TaskGroups[].Services[].CheckRestart.Grace":                  {"TaskGroups[].Services[].Checks[].CheckRestart.Grace", 27 * time.Second},
	"TaskGroups[].Services[].CheckRestart.IgnoreWarnings":         {"TaskGroups[].Services[].Checks[].CheckRestart.IgnoreWarnings", true},
	"TaskGroups[].Tasks[].Services[].OnUpdate":                    {"TaskGroups[].Tasks[].Services[].Checks[].OnUpdate", "ignore"},
	"TaskGroups[].Tasks[].Services[].CheckRestart.Limit":          {"TaskGroups[].Tasks[].Services[].Checks[].CheckRestart.Limit", 7},
	"TaskGroups[].Tasks[].Services[].CheckRestart.Grace":          {"TaskGroups[].Tasks[].Services[].Checks[].CheckRestart.Grace", 27 * time.Second},
	"TaskGroups[].Tasks[].Services[].CheckRestart.IgnoreWarnings": {"TaskGroups[].Tasks[].Services[].Checks[].CheckRestart.IgnoreWarnings", true},
	"TaskGroups[].StopAfterClientDisconnect":                      {"TaskGroups[].Disconnect.StopOnClientAfter", 27 * time.Second},
	"TaskGroups[].MaxClientDisconnect":                            {"TaskGroups[].Disconnect.LostAfter", 27 * time.Second},
	"TaskGroups[].PreventRescheduleOnLost":                        {"TaskGroups[].Disconnect.Replace", false},
}

// Each field of the compatible API's job is kept, warned of, refused or set by the servers, as the table states:
// it is registered alone in a job that is otherwise plain. A field that the API's library has and the table has
// not fails the test. "plan" and "validate" have the warnings of the registration.
//
// Regression: of 129 job files of users that the servers accepted, 44 used something that was lost without a word.
//
//race:skip one request after the other
func TestJobFields_eachAlone(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	jobs := w.client().Jobs()
	table, used := map[string]jobfields.Field{}, map[string]bool{}
	for _, row := range jobfields.Fields() {
		table[row.Path] = row
	}
	for i, f := range jobFieldsOf(reflect.TypeFor[api.Job](), "", nil) {
		row, is := tableRow(table, f.path)
		if !is {
			t.Errorf("%s: the table has no row with a verdict", f.path)
			continue
		}
		parts := strings.Split(f.path, ".")
		for n := range parts {
			path := strings.Join(parts[:n+1], ".")
			used[path] = true
			if of, is := table[path]; is && of.Name != f.names[n] {
				t.Errorf("%s: the name in HCL is %q, and in the table %q", path, f.names[n], of.Name)
			}
		}
		t.Run(f.path, func(t *testing.T) {
			job, value := plainJob(fmt.Sprintf("web-%d", i), f.path), valueFor(f)
			field, _ := fieldOf(reflect.ValueOf(job), f.path, true)
			field.Set(value)
			for _, need := range row.Beside {
				if len(need.Values) > 0 && len(need.At) == 0 {
					setBeside(job, row, need.Key, need.Values[0])
				}
			}
			if f.path == "ID" {
				job.Name = job.ID
			}
			q := &api.WriteOptions{Namespace: *job.Namespace}
			valid := result.Read(jobs.Validate(job, q)).OK(t)
			answer, _, err := jobs.Register(job, q)
			if row.Verdict == jobfields.Refused {
				must.ErrorContains(t, err, "is not supported: "+row.Why)
				must.Eq(t, placeIn(f, row)+" is not supported: "+row.Why, withoutNames(valid.Error))
				must.StrContains(t, err.Error(), valid.Error)
				return
			}
			must.NoError(t, err)
			must.Eq(t, answer.Warnings, valid.Warnings)
			must.Eq(t, "", valid.Error)
			plan := result.Read(jobs.Plan(job, false, q)).OK(t)
			must.Eq(t, answer.Warnings, plan.Warnings)
			read := result.Read(jobs.Info(*job.ID, &api.QueryOptions{Namespace: *job.Namespace})).OK(t)
			path, kept := f.path, value.Interface()
			if as, is := keptAs[f.path]; is && row.Verdict == jobfields.Kept {
				path, kept = as.path, as.value
			}
			back, is := fieldOf(reflect.ValueOf(read), path, false)
			same := is && reflect.DeepEqual(back.Interface(), kept)
			switch row.Verdict {
			case jobfields.Kept:
				must.Eq(t, "", answer.Warnings)
				must.True(t, same, must.Sprintf("%s is %v in the answer", path, back))
			case jobfields.NotRead:
				must.Eq(t, "", answer.Warnings)
				must.False(t, same)
			case jobfields.Warned:
				must.Eq(t, placeIn(f, row)+" is not supported and has no effect: "+row.Why, withoutNames(answer.Warnings))
				must.False(t, same)
			}
		})
	}
	for path, row := range table {
		if used[path] == row.Ours {
			t.Errorf("%s: a row of a field that the API does not have is ours, and no other", path)
		}
	}
}

// setBeside sets another field of the block of a row. A check of type script has a command and a task, and no path.
func setBeside(job *api.Job, row jobfields.Field, key, value string) {
	block := row.Path[:strings.LastIndexByte(row.Path, '.')+1]
	set := func(key, value string) {
		if field, _ := fieldOf(reflect.ValueOf(job), block+key, true); block+key != row.Path {
			field.SetString(value)
		}
	}
	if value == "script" {
		set("Command", "true")
		set("TaskName", "main")
		set("Path", "")
	}
	set(key, value)
}

// A field that has no effect beside another one of its block is kept, and the answers warn of it.
//
// Bug: the servers kept the path of a tcp check, the command of an http check and their like without a word.
//
//race:skip one request after the other
func TestJobFields_withoutEffect(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	jobs := w.client().Jobs()
	all := jobFieldsOf(reflect.TypeFor[api.Job](), "", nil)
	for _, row := range jobfields.Fields() {
		for _, need := range row.Beside {
			i := slices.IndexFunc(all, func(f jobField) bool { return f.path == row.Path })
			if i < 0 || len(need.Values) == 0 {
				continue // it is ours, or a block
			}
			f := all[i]
			job, other := plainJob("web", f.path), ""
			field, _ := fieldOf(reflect.ValueOf(job), f.path, true)
			field.Set(valueFor(f))
			for _, value := range need.At {
				field.SetString(value)
			}
			for _, before := range row.Beside {
				setBeside(job, row, before.Key, before.Values[0])
			}
			if need.Key == "Type" {
				if other = "script"; slices.Contains(need.Values, other) {
					other = "tcp"
				}
			}
			setBeside(job, row, need.Key, other)
			answer := result.Read(jobs.Register(job, nil)).OK(t)
			must.SliceContains(t, strings.Split(withoutNames(answer.Warnings), "\n"),
				fmt.Sprintf("%s has no effect with %s: it is for %s %s", placeIn(f, row), strings.ToLower(need.Key), strings.ToLower(need.Key), strings.Join(need.Values, " or ")))
			read := result.Read(jobs.Info(*job.ID, nil)).OK(t)
			back, is := fieldOf(reflect.ValueOf(read), f.path, false)
			must.True(t, is && (reflect.DeepEqual(back.Interface(), field.Interface()) || strings.HasSuffix(f.path, ".Protocol")), must.Sprint(f.path))
		}
	}
}

// placeIn is the start of the message about a row, without the names of groups, tasks and others: the name in HCL
// with those around it.
func placeIn(f jobField, row jobfields.Field) string {
	parts := strings.Split(row.Path, ".")
	names := append(f.names[:len(parts)-1:len(parts)-1], cmp.Or(f.names[len(parts)-1], strings.TrimRight(parts[len(parts)-1], "[]{}")))
	switch {
	case strings.HasPrefix(row.Path, "TaskGroups[].Tasks[]."):
		return "group, task: " + strings.Join(names[2:], ".")
	case strings.HasPrefix(row.Path, "TaskGroups[]."):
		return "group: " + strings.Join(names[1:], ".")
	}
	return "job: " + strings.Join(names, ".")
}

// withoutNames removes the names of groups, tasks and others from a message.
func withoutNames(text string) string {
	return regexp.MustCompile(` "[^"]*"`).ReplaceAllString(text, "")
}
