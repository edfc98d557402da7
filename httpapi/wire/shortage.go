package wire

// AllocationMetric counts the nodes that could take an allocation of a group, and has the reasons why the others
// could not. The reference stores it when it plans; our servers compute it from the state for each
// request.
type AllocationMetric struct {
	// NodesEvaluated counts the ready nodes in the job's datacenters and pool. NodesInPool counts
	// those in its pool, in any datacenter.
	NodesEvaluated int
	NodesInPool    int
	NodePool       string
	// NodesAvailable counts the ready nodes of the pool by datacenter.
	NodesAvailable map[string]int
	// NodesFiltered counts the evaluated nodes that a constraint excludes. ConstraintFiltered
	// counts them by constraint, ClassFiltered by node class.
	NodesFiltered      int
	ConstraintFiltered map[string]int
	ClassFiltered      map[string]int
	// NodesExhausted counts the other nodes without enough room. ClassExhausted counts them by
	// node class, DimensionExhausted by what is short: a node can be short of several resources. Those
	// short of "devices" have them in use, and those short of "healthy devices" have them unhealthy.
	// Nodes that do not have them at all are filtered.
	NodesExhausted     int
	ClassExhausted     map[string]int
	DimensionExhausted map[string]int
	// CoalescedFailures counts the allocations of the group that could not be placed, less one.
	CoalescedFailures int

	// Fields that this system does not have: empty or null, as in the reference.
	QuotaExhausted     []string
	ResourcesExhausted map[string]*Nothing
	Scores             map[string]float64
	ScoreMetaData      []*Nothing
	AllocationTime     int64

	// The following fields are ours.

	// NodesNotReady counts the nodes of the pool that take no new work, by reason.
	NodesNotReady map[string]int `json:",omitempty"`
	// Nearest is the exhausted node that lacks least, or nil.
	Nearest *NearestNode `json:",omitempty"`
}

// NewAllocationMetric returns a metric of a node pool that counts nothing yet.
func NewAllocationMetric(pool string) *AllocationMetric {
	return &AllocationMetric{
		NodePool: pool, NodesAvailable: map[string]int{}, ConstraintFiltered: map[string]int{}, ClassFiltered: map[string]int{},
		ClassExhausted: map[string]int{}, DimensionExhausted: map[string]int{}, NodesNotReady: map[string]int{},
	}
}

// NearestNode is a node that is nearly large enough.
type NearestNode struct {
	ID   string
	Name string
	// Short is how much is missing, by resource: cpu in MHz, memory and disk in MiB, gpu in
	// thousandths of a device, allocations, devices and healthy devices.
	Short map[string]int64
}
