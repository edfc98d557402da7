//go:build !race

package live_test

// shareOfScenarios says that the tests play each n-th scenario. seeds is the number of seeds of
// the swarm that they play.
const (
	shareOfScenarios = 1
	seeds            = 12
)
