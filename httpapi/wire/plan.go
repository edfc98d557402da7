package wire

// JobPlanRequest is the body of PUT /v1/job/{id}/plan.
type JobPlanRequest struct {
	Job *Job
	// Diff requests [JobPlanResponse].Diff.
	Diff bool
}

// JobPlanResponse describes what a registration would do.
type JobPlanResponse struct {
	// JobModifyIndex is that of the registered job, or zero if there is none.
	JobModifyIndex uint64
	// CreatedEvals has the blocked evaluation that the plan would make, if any. Its id changes with
	// each request.
	CreatedEvals []*Evaluation
	// Diff compares the job with the registered one; nil if the request has no Diff.
	Diff        *JobDiff
	Annotations *PlanAnnotations
	// FailedTGAllocs has, by group, the reason why allocations could not be placed.
	FailedTGAllocs map[string]*AllocationMetric
	// NextPeriodicLaunch is always null: there are no periodic jobs.
	NextPeriodicLaunch Time
	Warnings           string
}

// PlanAnnotations count the changes of a plan.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates
	// PreemptedAllocs is always null: the scheduler preempts nothing.
	PreemptedAllocs []*AllocationListStub
}

// DesiredUpdates count the allocations of a group by what a plan does with them.
type DesiredUpdates struct {
	// Ignore counts those that stay as they are, Place those that are new or replace a lost one.
	// What fits nowhere counts in Place.
	Ignore uint64
	Place  uint64
	// Migrate counts the marked ones that leave their node, Stop those that stop for another
	// reason, also lost ones.
	Migrate uint64
	Stop    uint64
	// Disconnect counts those that become unknown, RescheduleNow those that have ended and are
	// replaced. RescheduleLater counts those that have ended and whose replacements are delayed.
	Disconnect      uint64
	RescheduleNow   uint64
	RescheduleLater uint64

	// The following fields are always zero: what a new version replaces counts as stopped and placed, what
	// runs on counts as ignored, and the scheduler neither makes canaries nor preempts.
	InPlaceUpdate     uint64
	DestructiveUpdate uint64
	Canary            uint64
	Preemptions       uint64
	Reconnect         uint64
}

// DiffType is how two versions of a part of a job differ.
type DiffType string

// The types of differences.
const (
	DiffNone    DiffType = "None"
	DiffAdded   DiffType = "Added"
	DiffDeleted DiffType = "Deleted"
	DiffEdited  DiffType = "Edited"
)

// JobDiff is the difference between two versions of a job.
type JobDiff struct {
	Type       DiffType
	ID         string
	Fields     []*FieldDiff
	Objects    []*ObjectDiff
	TaskGroups []*TaskGroupDiff
}

// TaskGroupDiff is the difference of a group. Groups and tasks that are equal are listed, too.
type TaskGroupDiff struct {
	Type    DiffType
	Name    string
	Fields  []*FieldDiff
	Objects []*ObjectDiff
	Tasks   []*TaskDiff
	// Updates counts the allocations by what the plan does with them, in words.
	Updates map[string]uint64
}

// TaskDiff is the difference of a task.
type TaskDiff struct {
	Type        DiffType
	Name        string
	Fields      []*FieldDiff
	Objects     []*ObjectDiff
	Annotations []string
}

// ObjectDiff is the difference of a block, such as resources.
type ObjectDiff struct {
	Type    DiffType
	Name    string
	Fields  []*FieldDiff
	Objects []*ObjectDiff
}

// FieldDiff is the difference of a value. Old or New is empty if there was or is none.
type FieldDiff struct {
	Type        DiffType
	Name        string
	Old, New    string
	Annotations []string
}
