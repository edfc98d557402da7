package timeline_test

import (
	"cmp"
	"math/rand/v2"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
)

// Names are in natural order, and the order is total and transitive.
func TestNatural(t *testing.T) {
	t.Parallel()
	ordered := []string{"", "0", "1", "a", "n", "n-1", "n0", "n01", "n1", "n2", "n2a", "n10", "n10b", "n010c", "web.a", "web.b"}
	for i, a := range ordered {
		for j, b := range ordered {
			must.Eq(t, cmp.Compare(i, j), timeline.Natural(a, b), must.Sprintf("%q and %q", a, b))
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	name := func() string {
		letters := make([]byte, rng.IntN(5))
		for i := range letters {
			letters[i] = "0012a-"[rng.IntN(6)]
		}
		return string(letters)
	}
	for range 100_000 {
		a, b, c := name(), name(), name()
		must.Eq(t, -timeline.Natural(b, a), timeline.Natural(a, b))
		must.Eq(t, a == b, timeline.Natural(a, b) == 0)
		if timeline.Natural(a, b) < 0 && timeline.Natural(b, c) < 0 {
			must.Negative(t, timeline.Natural(a, c), must.Sprintf("%q %q %q", a, b, c))
		}
	}
}
