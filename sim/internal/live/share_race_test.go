//go:build race

package live_test

// The race detector makes a play several times slower. It watches a share of the plays, the
// same in every run; all are played without it.
const (
	shareOfScenarios = 4
	seeds            = 2
)
