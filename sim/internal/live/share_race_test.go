//go:build race

package live_test

// With the race detector, a play is several times slower. So the tests play only a part of the
// scenarios and seeds, the same part in every run. Without it, they play all.
const (
	shareOfScenarios = 4
	seeds            = 2
)
