package world

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ids makes ids that sort in the order of their creation.
type ids struct{ allocs, evals, drains int }

func (i *ids) alloc() cluster.AllocID {
	i.allocs++
	return cluster.AllocID(fmt.Sprintf("a%06d", i.allocs))
}

func (i *ids) eval() cluster.EvalID {
	i.evals++
	return cluster.EvalID(fmt.Sprintf("e%06d", i.evals))
}

func (i *ids) drain() cluster.DrainID {
	i.drains++
	return cluster.DrainID(fmt.Sprintf("d%06d", i.drains))
}
