//go:build !race

package live_test

// All scenarios are played, and so many seeds of the swarm.
const (
	shareOfScenarios = 1
	seeds            = 12
)
