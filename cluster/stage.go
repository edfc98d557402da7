package cluster

// Stage is the turn in which an allocation leaves a draining node. A stage begins when the stage
// before it has left.
type Stage uint8

// The stages, in the order in which they leave.
const (
	// StageConsumers are the allocations of service, batch and sysbatch jobs
	// that are no storage plugin.
	StageConsumers Stage = iota
	// StageSystem are the allocations of system jobs that are no storage plugin.
	StageSystem
	// StagePlugins are the allocations of jobs with a storage plugin task, of every type.
	// Consumers may still unmount through them.
	StagePlugins

	// StageCount is how many stages there are.
	StageCount
)

// Stages returns every stage in the order in which they leave.
func Stages() [StageCount]Stage { return [StageCount]Stage{StageConsumers, StageSystem, StagePlugins} }

// String returns the stage's name as operators read it.
func (s Stage) String() string {
	switch s {
	case StageConsumers:
		return "consumers"
	case StageSystem:
		return "system"
	case StagePlugins:
		return "storage plugins"
	}
	return "unknown stage"
}
