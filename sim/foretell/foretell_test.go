package foretell_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/foretell"
)

// Plans are about right. They are wrong where everything takes twice as long as before: the comparison sees it.
func TestCompare(t *testing.T) {
	t.Parallel()
	var right, wrong foretell.Report
	for seed := range uint64(3) {
		for slower, r := range map[float64]*foretell.Report{1: &right, 2: &wrong} {
			c, err := foretell.Compare(t.Context(), 105+seed, foretell.Options{Unseen: 9, Slower: slower})
			must.NoError(t, err)
			r.Add(c)
		}
	}
	must.SliceEmpty(t, right.Missed(), must.Sprint(right.Table()))
	must.Len(t, 2, wrong.Missed(), must.Sprint(wrong.Table()))
}

// Equal seeds give equal comparisons.
func TestCompare_repeats(t *testing.T) {
	t.Parallel()
	compare := func() *foretell.Comparison {
		c, err := foretell.Compare(t.Context(), 101, foretell.Options{Plays: 3, Unseen: 3})
		must.NoError(t, err)
		return c
	}
	must.Eq(t, compare(), compare())
}

// A report of no world with bounds is no proof.
func TestReport_none(t *testing.T) {
	t.Parallel()
	must.Len(t, 1, new(foretell.Report).Missed())
}
