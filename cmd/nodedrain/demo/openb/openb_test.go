//race:skip one goroutine
package openb_test

import (
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
)

// The rules of the package make nodes and jobs of the lists.
func TestLoad(t *testing.T) {
	t.Parallel()
	trace, err := openb.Load("testdata")
	must.NoError(t, err)

	nodes := trace.Nodes()
	must.SliceLen(t, 3, nodes)
	must.Eq(t, "", nodes[0].NodeClass)
	must.Eq(t, "G2", nodes[1].NodeClass)
	must.Eq(t, cluster.Resources{CPU: 64000, MemoryMB: 131072, GPU: 8000}, nodes[1].Resources)
	must.True(t, nodes[1].Ready())

	var got []string
	for _, j := range trace.Jobs() {
		must.NoError(t, j.Validate())
		g := j.TaskGroups[0]
		got = append(got, strings.Join([]string{string(j.Type), string(j.ID), strings.Repeat("*", g.Count), strings.Join(g.NodeClasses, " ")}, " "))
	}
	must.Eq(t, []string{
		"service guaranteed-cpu8000-mem16384-gpu2000-on-T4|G2 * T4 G2",
		"service ls-cpu8000-mem16384-gpu460 * ",
		"service burstable-cpu4000-mem8192 * ",
		"service ls-cpu4000-mem8192 ** ",
		"batch be-cpu2000-mem4096 * ",
	}, got)
}

// A tenth of a service group may be down at once, at least one allocation.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{0: 1, 1: 1, 19: 1, 20: 2, 801: 80} {
		must.Eq(t, want, openb.MaxParallel(count))
	}
}

// Errors name the file and the line.
func TestRead_badInput(t *testing.T) {
	t.Parallel()
	const (
		nodes = "sn,cpu_milli,memory_mib,gpu,model\n"
		pods  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n"
	)
	cases := []struct{ name, machines, pods, want string }{
		{"empty", "", "", "nodes.csv:1: the list is empty: the first line must name the columns"},
		{"no column", "sn,cpu_milli,memory_mib,model\n", "", `nodes.csv:1: column "gpu" is missing`},
		{"a column twice", "sn,cpu_milli,memory_mib,gpu,model,sn\n", "", `nodes.csv:1: column "sn" occurs twice`},
		{"no name", nodes + ",1,1,0,\n", "", "nodes.csv:2: sn is empty"},
		{"a name twice", nodes + "a,1,1,0,\nb,1,1,0,\na,1,1,0,\n", "", `nodes.csv:4: sn "a" is listed twice`},
		{"no number", nodes + "a,1,1,0,\nb,1,much,0,\n", "", `nodes.csv:3: memory_mib is "much" and must be a whole number, not negative`},
		{"negative", nodes + "a,-1,1,0,\n", "", `nodes.csv:2: cpu_milli is "-1" and must be a whole number, not negative`},
		{"too much", nodes + "a,1,1,99999999999999,\n", "", `nodes.csv:2: gpu is "99999999999999", which is more than any machine has`},
		{"beyond numbers", nodes + "a,99999999999999999999,1,0,\n", "", `nodes.csv:2: cpu_milli is "99999999999999999999" and must be a whole number, not negative`},
		{"a short line", nodes + "a,1,1,0,\nb,1\n", "", "nodes.csv:3: wrong number of fields"},
		{"a broken quote", nodes + "\"a,1,1,0,\n", "", `nodes.csv:2: extraneous or missing " in quoted-field`},
		{"unknown qos", nodes, pods + "p,1,1,0,0,,Gold,Running\n", `pods.csv:2: qos is "Gold" and must be LS, BE, Burstable or Guaranteed`},
		{"no phase", nodes, pods + "p,1,1,0,0,,LS,\n", "pods.csv:2: pod_phase is empty"},
		{"a share of more than one", nodes, pods + "p,1,1,1,1001,,LS,Running\n", "pods.csv:2: gpu_milli is 1001, which is more than one device"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := openb.ReadMachines("nodes.csv", strings.NewReader(c.machines))
			if err == nil {
				_, err = openb.ReadPods("pods.csv", strings.NewReader(c.pods))
			}
			must.EqError(t, err, c.want)
		})
	}
}

// A column that may be empty may be missing, as in variants of the trace.
func TestRead_optionalColumns(t *testing.T) {
	t.Parallel()
	machines, err := openb.ReadMachines("nodes.csv", strings.NewReader("sn,cpu_milli,memory_mib,gpu\na,4000,8192,2\n"))
	must.NoError(t, err)
	must.Eq(t, []openb.Machine{{Name: "a", CPUMilli: 4000, MemoryMiB: 8192, GPUs: 2}}, machines)
	pods, err := openb.ReadPods("pods.csv", strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,pod_phase\np,1,2,1,460,LS,Running\n"))
	must.NoError(t, err)
	must.Eq(t, []openb.Pod{{Name: "p", CPUMilli: 1, MemoryMiB: 2, GPUs: 1, GPUMilli: 460, QoS: "LS", Phase: "Running"}}, pods)
}

// An error names the missing list.
func TestLoad_missing(t *testing.T) {
	t.Parallel()
	_, err := openb.Load(t.TempDir())
	must.ErrorIs(t, err, os.ErrNotExist)
	must.StrContains(t, err.Error(), "nodes.csv")
}

// The real trace has the numbers in its README.
func TestLoad_real(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("NODEDRAIN_OPENB")
	if dir == "" {
		t.Skip("NODEDRAIN_OPENB names no directory with the trace")
	}
	trace, err := openb.Load(dir)
	must.NoError(t, err)
	must.SliceLen(t, 1523, trace.Nodes())
	must.SliceLen(t, 8152, trace.Pods)
	total, batch := 0, 0
	for _, j := range trace.Jobs() {
		must.NoError(t, j.Validate())
		total += j.TaskGroups[0].Count
		if j.Type == cluster.JobBatch {
			batch += j.TaskGroups[0].Count
		}
	}
	must.Eq(t, 5193, total)
	must.Eq(t, 1330, batch)
}

// No list makes the reader panic. Accepted lists make valid nodes, and valid jobs with every
// running pod.
func FuzzRead(f *testing.F) {
	for _, name := range []string{openb.NodesFile, openb.PodsFile} {
		list, err := os.ReadFile("testdata/" + name)
		must.NoError(f, err)
		f.Add(string(list))
	}
	f.Add("sn,cpu_milli,memory_mib,gpu,model\n\"a\nb\",1,1,0,\n")
	f.Fuzz(func(t *testing.T, list string) {
		machines, machinesErr := openb.ReadMachines("list", strings.NewReader(list))
		pods, podsErr := openb.ReadPods("list", strings.NewReader(list))
		for _, err := range []error{machinesErr, podsErr} {
			if err != nil && !strings.HasPrefix(err.Error(), "list:") {
				t.Fatalf("an error without file and line: %v", err)
			}
		}
		trace := &openb.Trace{Machines: machines, Pods: pods}
		must.SliceLen(t, len(machines), trace.Nodes())
		running, grouped := 0, 0
		for _, p := range pods {
			if p.Phase == "Running" {
				running++
			}
		}
		ids := make(map[cluster.JobID]bool)
		for _, j := range trace.Jobs() {
			must.NoError(t, j.Validate())
			must.False(t, ids[j.ID])
			ids[j.ID] = true
			grouped += j.TaskGroups[0].Count
		}
		must.Eq(t, running, grouped)
	})
}
