package planted

import "context"

// From is from.
func (h Hunt) From(ctx context.Context, binary string, first uint64) (Catch, error) {
	return h.from(ctx, binary, first)
}

// Ordinary is ordinary.
func Ordinary(ctx context.Context, root string) ([][]string, error) { return ordinary(ctx, root) }

// FailedTest is failedTest.
func FailedTest(output string) string { return failedTest(output) }
