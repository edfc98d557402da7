package lifecycle_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// An FSM writes the rows that these functions return. They do not change the rows that they take.
func ExampleStartDrain() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	before := &cluster.Node{ID: "n1", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible}

	// The entry with index 7 is an operator's request.
	started, err := lifecycle.StartDrain(before, cluster.DrainUpdate{
		Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: noon, Key: "request-1",
	}, 7)
	if err != nil {
		fmt.Println(err) // the entry changes nothing
		return
	}
	fmt.Println(started.SchedulingEligibility, "until", started.Drain.Strategy.ForceDeadline.Format(time.TimeOnly))

	// The entry with index 9 gives the same drain another deadline. Marks at the deadline that were
	// planned for revision 7 are refused from now on.
	updated := lifecycle.UpdateDrain(started, cluster.DrainUpdate{
		Node: "n1", Spec: &cluster.DrainSpec{Deadline: 3 * time.Hour}, At: noon.Add(time.Minute), Key: "request-2",
	}, 9)
	fmt.Println(updated.Drain.ID, "has revision", updated.Drain.Revision)
	fmt.Println(updated.Drain.HasKey("request-1"), before.Draining())

	// Output:
	// ineligible until 13:00:00
	// d1 has revision 9
	// true false
}
