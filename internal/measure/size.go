package measure

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Size is how large the clusters are that are measured.
type Size string

// The sizes.
const (
	// Small fits into the checks of every change.
	Small Size = "small"
	// Full is what the bounds speak of.
	Full Size = "full"
)

// SizeVariable is the environment variable that tells benchmarks the size; unset is
// [Small].
const SizeVariable = "NODEDRAIN_BENCH_SIZE"

// ParseSize returns the size of that name; none is [Small].
func ParseSize(name string) (Size, error) {
	switch s := Size(name); s {
	case "":
		return Small, nil
	case Small, Full:
		return s, nil
	}
	return "", fmt.Errorf("%q is no size: there are %s and %s", name, Small, Full)
}

// SizeOf returns the size that a benchmark is to have.
func SizeOf(b *testing.B) Size {
	b.Helper()
	s, err := ParseSize(os.Getenv(SizeVariable))
	if err != nil {
		b.Fatalf("%s: %v", SizeVariable, err)
	}
	return s
}

// How many pairs a ratio is the median of. With fewer than MinPairs nothing would say how
// far they spread.
const (
	DefaultPairs = 5
	MinPairs     = 3
)

// PairsVariable is the environment variable that tells benchmarks how many pairs to
// measure; unset is [DefaultPairs].
const PairsVariable = "NODEDRAIN_BENCH_PAIRS"

// ParsePairs returns how many pairs are to be measured; none is [DefaultPairs].
func ParsePairs(text string) (int, error) {
	if text == "" {
		return DefaultPairs, nil
	}
	pairs, err := strconv.Atoi(text)
	if err != nil || pairs < MinPairs || pairs%2 == 0 {
		return 0, fmt.Errorf("%q is no number of pairs: it is odd, and %d at least", text, MinPairs)
	}
	return pairs, nil
}

// PairsOf returns how many pairs a benchmark is to measure.
func PairsOf(b *testing.B) int {
	b.Helper()
	pairs, err := ParsePairs(os.Getenv(PairsVariable))
	if err != nil {
		b.Fatalf("%s: %v", PairsVariable, err)
	}
	return pairs
}
