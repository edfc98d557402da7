package cluster_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func unlisted(from, to int) *cluster.UnlistedAllocs {
	var ids []cluster.AllocID
	for i := to - 1; i >= from; i-- {
		ids = append(ids, cluster.AllocID(fmt.Sprintf("a%02d", i)))
	}
	return cluster.NewUnlistedAllocs(ids)
}

func TestUnlistedAllocs_Check(t *testing.T) {
	t.Parallel()
	must.NoError(t, (*cluster.UnlistedAllocs)(nil).Check())
	must.NoError(t, unlisted(0, 0).Check())
	must.NoError(t, unlisted(0, 3).Check())
	must.NoError(t, unlisted(0, 50).Check())
	must.Len(t, cluster.MaxUnconfirmedNames, unlisted(0, 50).Allocs)
	for what, wrong := range map[string]*cluster.UnlistedAllocs{
		"a negative count":             {Count: -1},
		"too few names":                {Count: 2, Allocs: []cluster.AllocID{"a"}},
		"too many names":               {Count: 1, Allocs: []cluster.AllocID{"a", "b"}},
		"no order":                     {Count: 2, Allocs: []cluster.AllocID{"b", "a"}},
		"the same name":                {Count: 2, Allocs: []cluster.AllocID{"a", "a"}},
		"an invalid name":              {Count: 1, Allocs: []cluster.AllocID{""}},
		"a count that a sum overflows": {Count: math.MaxInt, Allocs: unlisted(0, 20).Allocs},
	} {
		must.Error(t, wrong.Check(), must.Sprint(what))
	}
}

// A count falls for what a report certainly does not contain. Without all names it may stay too high.
func TestUnlistedAllocs_LeftIn(t *testing.T) {
	t.Parallel()
	for what, one := range map[string]struct{ was, report, left *cluster.UnlistedAllocs }{
		"all end":          {unlisted(0, 3), unlisted(0, 0), nil},
		"one ends":         {unlisted(0, 3), unlisted(1, 3), unlisted(1, 3)},
		"others began":     {unlisted(0, 3), unlisted(2, 9), unlisted(2, 3)},
		"none before":      {nil, unlisted(0, 3), nil},
		"behind the names": {unlisted(18, 22), unlisted(0, 25), unlisted(18, 22)},
		"some of many":     {unlisted(0, 30), unlisted(5, 30), &cluster.UnlistedAllocs{Count: 25, Allocs: unlisted(5, 20).Allocs}},
		"few of many":      {unlisted(0, 30), unlisted(10, 12), unlisted(10, 12)},
	} {
		must.Eq(t, one.left, one.was.LeftIn(one.report), must.Sprint(what))
	}
}
