package httpapi_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A registration warns of an unknown name in each place of a job that may name one, and of no known one. Bug: there
// was no warning for the right side of a constraint, for devices and for meta.
func TestReferenceClient_unknownNames(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	n := w.State().Node(nodeID(1)).Copy()
	n.Devices = []*cluster.DeviceGroup{gpus("a", "b")}
	n.Devices[0].Attributes = map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: 16, Unit: "GiB"}}
	w.must(&shims.NodeRegister{At: w.Now(), Node: n})

	const known = "${attr.os.name}"
	places := map[string]struct {
		set  func(j *api.Job, name string)
		want string
	}{
		"constraint of the job, right side": {
			func(j *api.Job, name string) { j.Constrain(api.NewConstraint(known, "=", name)) },
			`job: constraint "${attr.os.name} = ${attr.os.nmae}": no node has ${attr.os.nmae} now, so no node can run its tasks`,
		},
		"constraint of the group": {
			func(j *api.Job, name string) { j.TaskGroups[0].Constrain(api.NewConstraint(name, "is_set", "")) },
			`group "web": constraint "${attr.os.nmae} is_set": no node has ${attr.os.nmae} now, so no node can run its tasks`,
		},
		"constraint of the task": {
			func(j *api.Job, name string) {
				j.TaskGroups[0].Tasks[0].Constrain(api.NewConstraint(name, "=", "debian"))
			},
			`group "web": task "main": constraint "${attr.os.nmae} = debian": no node has ${attr.os.nmae} now, so no node can run its tasks`,
		},
		"environment": {
			func(j *api.Job, name string) { j.TaskGroups[0].Tasks[0].Env = map[string]string{"OS": name} },
			`group "web": no node has the variable ${attr.os.nmae} now, so no node can run its tasks`,
		},
		"user": {
			func(j *api.Job, name string) { j.TaskGroups[0].Tasks[0].User = "of-" + name },
			`group "web": no node has the variable ${attr.os.nmae} now, so no node can run its tasks`,
		},
		"config": {
			func(j *api.Job, name string) {
				j.TaskGroups[0].Tasks[0].SetConfig("args", []any{map[string]any{"-os=" + name: 1}})
			},
			`group "web": no node has the variable ${attr.os.nmae} now, so no node can run its tasks`,
		},
	}
	for place, at := range places {
		for _, name := range []string{known, "${attr.os.nmae}"} {
			job := newJob(1, 100)
			job.TaskGroups[0].Tasks[0].Driver = "raw_exec"
			at.set(job, name)
			want := at.want
			if name == known {
				want = ""
			}
			must.EqOp(t, want, result.Read(jobs.Register(job, nil)).OK(t).Warnings, must.Sprint(place))
			must.EqOp(t, want, result.Read(jobs.Validate(job, nil)).OK(t).Warnings, must.Sprint(place))
			must.EqOp(t, want, result.Read(jobs.Plan(job, false, nil)).OK(t).Warnings, must.Sprint(place))
		}
	}

	broken := newJob(1, 100)
	broken.TaskGroups[0].Tasks[0].Env = map[string]string{"OS": known + "${attr.os"}
	broken.TaskGroups[0].Tasks[0].Constrain(api.NewConstraint(known, "is_set", "debian"))
	must.EqOp(t, `group "web": task "main": constraint "${attr.os.name} is_set": its right side "debian" has no effect
group "web": a variable in "${attr.os.name}${attr.os" has no closing brace, so no node can run its tasks`, result.Read(jobs.Validate(broken, nil)).OK(t).Warnings)

	job := gpuJob(1)
	must.EqOp(t, "", result.Read(jobs.Validate(job, nil)).OK(t).Warnings)
	device := job.TaskGroups[0].Tasks[0].Resources.Devices[0]
	device.Constraints[0].LTarget, device.Affinities[0].LTarget = "${device.attr.memroy}", "${device.attr.watts}"
	job.SetMeta("rack", known).TaskGroups[0].SetMeta("a", "${").Tasks[0].SetMeta("b", "$${x}")
	must.Eq(t, strings.Split(`job: meta "rack": ${attr.os.name} stays as it is: variables in meta are not replaced
group "web": task "main": device "nvidia/gpu": constraint "${device.attr.memroy} >= 2 GiB": no such device has ${device.attr.memroy} now, so no node can run its tasks
group "web": task "main": device "nvidia/gpu": affinity "${device.attr.watts} = A100": no such device has ${device.attr.watts} now, so it has no effect`, "\n"),
		strings.Split(result.Read(jobs.Validate(job, nil)).OK(t).Warnings, "\n"))
}

// A constraint may name the region of its nodes, which is that of the servers. Bug: it was refused.
func TestReferenceClient_constraintOnRegion(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := result.Of(api.NewClient(&api.Config{Address: w.serve(httpapi.Options{Region: "eu"}).URL})).OK(t).Jobs()
	for region, placed := range map[string]int{"eu": 1, "us": 0} {
		job := newJob(1, 100)
		job.ID, job.Name = new("in-"+region), new("in-"+region)
		job.Constrain(api.NewConstraint("${node.region}", "=", region))
		job.TaskGroups[0].Constrain(api.NewConstraint(region, "regexp", "${node.region}"))
		job.TaskGroups[0].Tasks[0].Constrain(api.NewConstraint("${node.region}", "is_set", ""))
		must.EqOp(t, "", result.Read(jobs.Register(job, nil)).OK(t).Warnings)
		plan := w.schedule(w.State().Job(cluster.JobKey{Namespace: "default", ID: cluster.JobID("in-" + region)}))
		must.Len(t, placed, plan.Places, must.Sprint(region))
	}
	plan := result.Read(jobs.Plan(newJob(1, 100).Constrain(api.NewConstraint("${node.region}", "=", "us")), true, nil)).OK(t)
	must.Eq(t, map[string]int{"eu = us": 1}, plan.FailedTGAllocs["web"].ConstraintFiltered)
}

// No request gets devices of two models. Bug: a job that only two models of a node would fulfil together waited, and
// its reason claimed that the devices are missing.
func TestReferenceClient_devicesOfSeveralModels(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	n := w.State().Node(nodeID(1)).Copy()
	other := gpus("c")
	other.Kind.Name = "H100"
	n.Devices = []*cluster.DeviceGroup{gpus("a", "b"), other}
	w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	jobs := w.client().Jobs()
	job := gpuJob(3)
	job.TaskGroups[0].Tasks[0].Resources.Devices[0].Constraints = nil
	const reason = "missing devices: 3 nvidia/gpu of one model"
	plan := result.Read(jobs.Plan(job, false, nil)).OK(t)
	must.Eq(t, map[string]int{reason: 1, "missing devices: 3 nvidia/gpu": 1}, plan.FailedTGAllocs["web"].ConstraintFiltered)
	must.EqOp(t, `group "web": no node can run its tasks now: `+reason+`: a request gets devices of one model`, plan.Warnings)
	must.EqOp(t, plan.Warnings, result.Read(jobs.Register(job, nil)).OK(t).Warnings)

	*job.TaskGroups[0].Tasks[0].Resources.Devices[0].Count = 4 // more than the node has of both
	must.EqOp(t, "", result.Read(jobs.Register(job, nil)).OK(t).Warnings)
	*job.TaskGroups[0].Tasks[0].Resources.Devices[0].Count = 2
	must.EqOp(t, "", result.Read(jobs.Register(job, nil)).OK(t).Warnings)
}
