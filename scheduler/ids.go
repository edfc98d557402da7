package scheduler

import (
	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// IDs creates ids for allocations and evaluations. Ids are unique.
type IDs struct {
	// Alloc makes the id of an allocation; never nil.
	Alloc func() cluster.AllocID
	// Eval makes the id of an evaluation; never nil.
	Eval func() cluster.EvalID
}

// RandomIDs makes random UUIDs.
func RandomIDs() IDs {
	return IDs{
		Alloc: func() cluster.AllocID { return cluster.AllocID(uuid.NewString()) },
		Eval:  func() cluster.EvalID { return cluster.EvalID(uuid.NewString()) },
	}
}
