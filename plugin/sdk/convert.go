package sdk

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
)

// toTask converts a task from the protocol.
func toTask(t *pb.TaskConfig) *driver.TaskConfig {
	task := &driver.TaskConfig{
		ID:          driver.TaskID(t.GetId()),
		Name:        t.GetName(),
		Config:      t.GetMsgpackDriverConfig(),
		Env:         t.GetEnv(),
		DeviceEnv:   t.GetDeviceEnv(),
		Resources:   toResources(t.GetResources()),
		User:        t.GetUser(),
		AllocDir:    t.GetAllocDir(),
		StdoutPath:  t.GetStdoutPath(),
		StderrPath:  t.GetStderrPath(),
		AllocID:     t.GetAllocId(),
		GroupName:   t.GetTaskGroupName(),
		JobName:     t.GetJobName(),
		JobID:       t.GetJobId(),
		ParentJobID: t.GetParentJobId(),
		Namespace:   t.GetNamespace(),
		NodeName:    t.GetNodeName(),
		NodeID:      t.GetNodeId(),
		Network:     toNetwork(t.GetNetworkIsolationSpec()),
	}
	for _, m := range t.GetMounts() {
		task.Mounts = append(task.Mounts, driver.Mount{TaskPath: m.GetTaskPath(), HostPath: m.GetHostPath(), ReadOnly: m.GetReadonly(), Propagation: m.GetPropagationMode()})
	}
	for _, d := range t.GetDevices() {
		task.Devices = append(task.Devices, driver.Device{TaskPath: d.GetTaskPath(), HostPath: d.GetHostPath(), Permissions: d.GetCgroupPermissions()})
	}
	return task
}

func toResources(r *pb.Resources) driver.Resources {
	resources := driver.Resources{
		CPU:         r.GetAllocatedResources().GetCpu().GetCpuShares(),
		Cores:       r.GetLinuxResources().GetCpusetCpus(),
		MemoryMB:    r.GetAllocatedResources().GetMemory().GetMemoryMb(),
		MemoryMaxMB: r.GetAllocatedResources().GetMemory().GetMemoryMaxMb(),
		Cgroup:      r.GetLinuxResources().GetCpusetCgroup(),
	}
	for _, p := range r.GetPorts() {
		resources.Ports = append(resources.Ports, driver.Port{Label: p.GetLabel(), Number: int(p.GetValue()), To: int(p.GetTo()), HostIP: p.GetHostIp()})
	}
	if networks := r.GetAllocatedResources().GetNetworks(); len(networks) > 0 {
		n := networks[0]
		resources.TaskNetwork = &driver.TaskNetwork{IP: n.GetIp(), Static: toTaskPorts(n.GetReservedPorts()), Dynamic: toTaskPorts(n.GetDynamicPorts())}
	}
	return resources
}

func toTaskPorts(ports []*pb.NetworkPort) (list []driver.TaskPort) {
	for _, p := range ports {
		list = append(list, driver.TaskPort{Label: p.GetLabel(), Number: int(p.GetValue())})
	}
	return list
}

func toNetwork(n *pb.NetworkIsolationSpec) *driver.Network {
	if n == nil {
		return nil
	}
	return &driver.Network{
		Mode:     driver.NetworkMode(n.GetMode()),
		Path:     n.GetPath(),
		Labels:   n.GetLabels(),
		Hostname: n.GetHostsConfig().GetHostname(),
		Address:  n.GetHostsConfig().GetAddress(),
	}
}

func fromNetwork(n *driver.Network) *pb.NetworkIsolationSpec {
	if n == nil {
		return nil
	}
	spec := &pb.NetworkIsolationSpec{Mode: pb.NetworkIsolationSpec_NetworkIsolationMode(n.Mode), Path: n.Path, Labels: n.Labels}
	if n.Hostname != "" || n.Address != "" {
		spec.HostsConfig = &pb.HostsConfig{Hostname: n.Hostname, Address: n.Address}
	}
	return spec
}

func fromCapabilities(c driver.Capabilities) *pb.DriverCapabilities {
	out := &pb.DriverCapabilities{
		SendSignals:          c.SendSignals,
		Exec:                 c.Exec,
		FsIsolation:          pb.DriverCapabilities_FSIsolation(c.FSIsolation),
		MustCreateNetwork:    c.MustCreateNetwork,
		DisableLogCollection: c.NoLogCollection,
		DynamicWorkloadUsers: c.DynamicWorkloadUsers,
	}
	if c.NoMounts {
		out.MountConfigs = pb.DriverCapabilities_NO_MOUNTS
	}
	for _, m := range c.NetworkModes {
		out.NetworkIsolationModes = append(out.NetworkIsolationModes, pb.NetworkIsolationSpec_NetworkIsolationMode(m))
	}
	return out
}

func fromExit(e driver.ExitResult) *pb.ExitResult {
	return &pb.ExitResult{ExitCode: int32(e.Code), Signal: int32(e.Signal), OomKilled: e.OOMKilled}
}

// fromTime returns nil for an unknown time.
func fromTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// orEmpty returns a schema without keys for nil.
func orEmpty(spec *hclspec.Spec) *hclspec.Spec {
	if spec == nil {
		return &hclspec.Spec{Block: &hclspec.Spec_Object{Object: &hclspec.Object{}}}
	}
	return spec
}
