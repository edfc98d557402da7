package measure

import (
	"fmt"
	"os"
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
