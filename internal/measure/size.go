package measure

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Size is the size of the clusters that are measured.
type Size string

// The sizes.
const (
	// Small is for the checks of every change.
	Small Size = "small"
	// Full is the size that the bounds are for.
	Full Size = "full"
)

// SizeVariable is the environment variable with the size. Unset means [Small].
const SizeVariable = "NODEDRAIN_BENCH_SIZE"

// ParseSize returns the size with the name. An empty name means [Small].
func ParseSize(name string) (Size, error) {
	switch s := Size(name); s {
	case "":
		return Small, nil
	case Small, Full:
		return s, nil
	}
	return "", fmt.Errorf("%q is no size: the sizes are %s and %s", name, Small, Full)
}

// SizeOf returns the size for a benchmark.
func SizeOf(b *testing.B) Size {
	b.Helper()
	s, err := ParseSize(os.Getenv(SizeVariable))
	if err != nil {
		b.Fatalf("%s: %v", SizeVariable, err)
	}
	return s
}

// The number of pairs of a ratio. Fewer than MinPairs have no interval at the level [Confidence].
const (
	DefaultPairs = 5
	MinPairs     = 5
)

// PairsVariable is the environment variable with the number of pairs. Unset means [DefaultPairs].
const PairsVariable = "NODEDRAIN_BENCH_PAIRS"

// ParsePairs returns the number of pairs. An empty text means [DefaultPairs].
func ParsePairs(text string) (int, error) {
	if text == "" {
		return DefaultPairs, nil
	}
	pairs, err := strconv.Atoi(text)
	if err != nil || pairs < MinPairs {
		return 0, fmt.Errorf("%q is no number of pairs: the smallest is %d", text, MinPairs)
	}
	return pairs, nil
}

// PairsOf returns the number of pairs for a benchmark.
func PairsOf(b *testing.B) int {
	b.Helper()
	pairs, err := ParsePairs(os.Getenv(PairsVariable))
	if err != nil {
		b.Fatalf("%s: %v", PairsVariable, err)
	}
	return pairs
}
