package openb

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of a trace.
const (
	NodesFile = "nodes.csv"
	PodsFile  = "pods.csv"
)

// Trace is the content of the two lists, in their order.
type Trace struct {
	Machines []Machine
	Pods     []Pod
}

// Machine is one line of nodes.csv.
type Machine struct {
	Name string
	// CPUMilli is in thousandths of a core, MemoryMiB in mebibytes.
	CPUMilli, MemoryMiB int64
	// GPUs counts devices, all of one Model, which is empty if there are none.
	GPUs  int64
	Model string
}

// Pod is one line of pods.csv, without the columns that are not used.
type Pod struct {
	Name                string
	CPUMilli, MemoryMiB int64
	// GPUs counts devices. GPUMilli is the share of a single device, in thousandths.
	GPUs, GPUMilli int64
	// GPUSpec are the models allowed, separated by bars; empty is any.
	GPUSpec string
	QoS     string
	Phase   string
}

// Load reads the two lists of a directory.
func Load(dir string) (*Trace, error) {
	trace := new(Trace)
	err := read(filepath.Join(dir, NodesFile), func(name string, r io.Reader) (err error) {
		trace.Machines, err = ReadMachines(name, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = read(filepath.Join(dir, PodsFile), func(name string, r io.Reader) (err error) {
		trace.Pods, err = ReadPods(name, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return trace, nil
}

func read(path string, parse func(name string, r io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	defer f.Close()
	return parse(path, f)
}

// ReadMachines reads a list of machines. The name of the file is used in errors.
func ReadMachines(file string, r io.Reader) ([]Machine, error) {
	t, err := openTable(file, r, "sn", "cpu_milli", "memory_mib", "gpu")
	if err != nil {
		return nil, err
	}
	var machines []Machine
	seen := make(map[string]bool)
	for {
		more, err := t.next()
		if err != nil || !more {
			return machines, err
		}
		m := Machine{
			Name: t.name("sn"), CPUMilli: t.amount("cpu_milli"), MemoryMiB: t.amount("memory_mib"),
			GPUs: t.amount("gpu"), Model: t.text("model"),
		}
		if seen[m.Name] {
			t.fail("sn", fmt.Sprintf("%q is listed twice", m.Name))
		}
		seen[m.Name] = true
		if t.err != nil {
			return nil, t.err
		}
		machines = append(machines, m)
	}
}

// ReadPods reads a list of pods. The name of the file is used in errors.
func ReadPods(file string, r io.Reader) ([]Pod, error) {
	t, err := openTable(file, r, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "pod_phase")
	if err != nil {
		return nil, err
	}
	var pods []Pod
	for {
		more, err := t.next()
		if err != nil || !more {
			return pods, err
		}
		p := Pod{
			Name: t.name("name"), CPUMilli: t.amount("cpu_milli"), MemoryMiB: t.amount("memory_mib"),
			GPUs: t.amount("num_gpu"), GPUMilli: t.amount("gpu_milli"), GPUSpec: t.text("gpu_spec"),
			QoS: t.text("qos"), Phase: t.name("pod_phase"),
		}
		if p.GPUMilli > 1000 {
			t.fail("gpu_milli", fmt.Sprintf("is %d, which is more than one device", p.GPUMilli))
		}
		if _, known := kinds[p.QoS]; !known {
			t.fail("qos", fmt.Sprintf("is %q and must be LS, BE, Burstable or Guaranteed", p.QoS))
		}
		if t.err != nil {
			return nil, t.err
		}
		pods = append(pods, p)
	}
}
