package cgroup

import (
	"testing"

	"github.com/shoenig/test/must"
)

func FuzzValue(f *testing.F) {
	f.Add("populated 0\nfrozen 1\n")
	f.Fuzz(func(_ *testing.T, text string) { value(text, "populated") })
}

func TestWeight(t *testing.T) {
	t.Parallel()
	for shares, expected := range map[int64]int64{0: 0, 1: 1, 2: 1, 1024: 39, 262_144: 10_000, 1 << 40: 10_000} {
		must.Eq(t, expected, weight(shares))
	}
}
