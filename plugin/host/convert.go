package host

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

func toTask(t *driver.TaskConfig) *pb.TaskConfig {
	task := &pb.TaskConfig{
		Id: string(t.ID), Name: t.Name, MsgpackDriverConfig: t.Config, Env: t.Env, DeviceEnv: t.DeviceEnv,
		Resources: toResources(t.Resources), User: t.User, AllocDir: t.AllocDir,
		StdoutPath: t.StdoutPath, StderrPath: t.StderrPath,
		TaskGroupName: t.GroupName, JobName: t.JobName, JobId: t.JobID, ParentJobId: t.ParentJobID,
		AllocId: t.AllocID, Namespace: t.Namespace, NodeName: t.NodeName, NodeId: t.NodeID,
		NetworkIsolationSpec: toNetwork(t.Network),
	}
	for _, m := range t.Mounts {
		task.Mounts = append(task.Mounts, &pb.Mount{TaskPath: m.TaskPath, HostPath: m.HostPath, Readonly: m.ReadOnly, PropagationMode: m.Propagation})
	}
	for _, d := range t.Devices {
		task.Devices = append(task.Devices, &pb.Device{TaskPath: d.TaskPath, HostPath: d.HostPath, CgroupPermissions: d.Permissions})
	}
	return task
}

// sharesOfCore is the weight of a whole core in a cgroup.
const sharesOfCore = 1024

// toResources also fills the fields for Linux, because released drivers read one or the other.
func toResources(r driver.Resources) *pb.Resources {
	resources := &pb.Resources{
		AllocatedResources: &pb.AllocatedTaskResources{
			Cpu:    &pb.AllocatedCpuResources{CpuShares: r.CPU},
			Memory: &pb.AllocatedMemoryResources{MemoryMb: r.MemoryMB, MemoryMaxMb: r.MemoryMaxMB},
		},
		LinuxResources: &pb.LinuxResources{
			CpuShares:        min(r.CPU, math.MaxInt64/sharesOfCore) * sharesOfCore / 1000,
			MemoryLimitBytes: r.MemoryBytes(),
			PercentTicks:     float64(r.CPU) / float64(1000*runtime.NumCPU()),
			CpusetCpus:       r.Cores,
			CpusetCgroup:     r.Cgroup,
		},
	}
	for _, p := range r.Ports {
		resources.Ports = append(resources.Ports, &pb.PortMapping{Label: p.Label, Value: int32(p.Number), To: int32(p.To), HostIp: p.HostIP})
	}
	if n := r.TaskNetwork; n != nil {
		resources.AllocatedResources.Networks = []*pb.NetworkResource{{Ip: n.IP, ReservedPorts: toTaskPorts(n.Static), DynamicPorts: toTaskPorts(n.Dynamic)}}
	}
	return resources
}

func toTaskPorts(ports []driver.TaskPort) (list []*pb.NetworkPort) {
	for _, p := range ports {
		list = append(list, &pb.NetworkPort{Label: p.Label, Value: int32(p.Number)})
	}
	return list
}

func toNetwork(n *driver.Network) *pb.NetworkIsolationSpec {
	if n == nil {
		return nil
	}
	spec := &pb.NetworkIsolationSpec{Mode: pb.NetworkIsolationSpec_NetworkIsolationMode(n.Mode), Path: n.Path, Labels: n.Labels}
	if n.Hostname != "" || n.Address != "" {
		spec.HostsConfig = &pb.HostsConfig{Hostname: n.Hostname, Address: n.Address}
	}
	return spec
}

func fromCapabilities(c *pb.DriverCapabilities, hostCgroup bool) driver.Capabilities {
	capabilities := driver.Capabilities{
		SendSignals: c.GetSendSignals(), Exec: c.GetExec(), FSIsolation: driver.FSIsolation(c.GetFsIsolation()),
		MustCreateNetwork: c.GetMustCreateNetwork(), NoMounts: c.GetMountConfigs() == pb.DriverCapabilities_NO_MOUNTS,
		NoLogCollection: c.GetDisableLogCollection(), DynamicWorkloadUsers: c.GetDynamicWorkloadUsers(),
		HostCgroup: hostCgroup,
	}
	for _, mode := range c.GetNetworkIsolationModes() {
		capabilities.NetworkModes = append(capabilities.NetworkModes, driver.NetworkMode(mode))
	}
	return capabilities
}

// fromExit returns a result. Some drivers return the signal only.
func fromExit(r *pb.ExitResult) driver.ExitResult {
	exit := driver.ExitResult{Code: int(r.GetExitCode()), Signal: int(r.GetSignal()), OOMKilled: r.GetOomKilled()}
	if exit.Signal > 0 && exit.Code == 0 {
		exit.Code = 128 + exit.Signal
	}
	return exit
}

func fromStatus(answer *pb.InspectTaskResponse) driver.Status {
	task := answer.GetTask()
	status := driver.Status{
		ID: driver.TaskID(task.GetId()), Name: task.GetName(), State: driver.TaskState(task.GetState()),
		StartedAt: fromTime(task.GetStartedAt()), CompletedAt: fromTime(task.GetCompletedAt()),
		Attributes: answer.GetDriver().GetAttributes(),
	}
	if status.State == driver.TaskExited && task.GetResult() != nil {
		exit := fromExit(task.GetResult())
		status.Exit = &exit
	}
	return status
}

// fromTime returns the zero time for a missing time, and for the year 1 that released drivers send.
func fromTime(t *timestamppb.Timestamp) time.Time {
	if !t.IsValid() || t.AsTime().Year() <= 1 {
		return time.Time{}
	}
	return t.AsTime()
}

// Limits of a driver's attributes, which become attributes of the node.
const (
	maxAttributes     = 256
	maxAttributeName  = 200
	maxAttributeValue = 1024
)

func fromFingerprint(f *pb.FingerprintResponse) driver.Fingerprint {
	health := driver.Fingerprint{Health: driver.Unhealthy, Description: plain(f.GetHealthDescription()), Attributes: map[string]string{}}
	switch f.GetHealth() {
	case pb.FingerprintResponse_HEALTHY:
		health.Health = driver.Healthy
	case pb.FingerprintResponse_UNDETECTED:
		health.Health = driver.Undetected
	}
	dropped := 0
	for _, name := range slices.Sorted(maps.Keys(f.GetAttributes())) {
		value := fromAttribute(f.GetAttributes()[name])
		if len(health.Attributes) >= maxAttributes || name == "" || len(name) > maxAttributeName || len(value) > maxAttributeValue {
			dropped++
			continue
		}
		health.Attributes[name] = value
	}
	if dropped > 0 {
		health.Description += fmt.Sprintf(" (%d attributes are too many or too long)", dropped)
	}
	return health
}

// fromAttribute returns the value of an attribute as text, with its unit.
func fromAttribute(a *structs.Attribute) string {
	switch v := a.GetValue().(type) {
	case *structs.Attribute_FloatVal:
		return strconv.FormatFloat(v.FloatVal, 'f', -1, 64) + a.GetUnit()
	case *structs.Attribute_IntVal:
		return strconv.FormatInt(v.IntVal, 10) + a.GetUnit()
	case *structs.Attribute_BoolVal:
		return strconv.FormatBool(v.BoolVal)
	case *structs.Attribute_StringVal:
		return v.StringVal
	}
	return ""
}

func fromUsage(s *pb.TaskStats) driver.Usage {
	use := s.GetAggResourceUsage()
	return driver.Usage{Time: fromTime(s.GetTimestamp()), CPUPercent: use.GetCpu().GetPercent(), RSS: use.GetMemory().GetRss()}
}

func fromEvent(e *pb.DriverTaskEvent) driver.Event {
	return driver.Event{
		Task: driver.TaskID(e.GetTaskId()), Time: fromTime(e.GetTimestamp()),
		Message: plain(e.GetMessage()), Annotations: e.GetAnnotations(),
	}
}
