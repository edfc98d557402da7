//go:build !race

package live_test

// Everything is played: each scenario with each kind of trouble, each that can be played
// over raft, and so many seeds of a swarm. What can take no trouble is left to
// TestPlay_sameEnd, however few allocations it has.
const (
	shareOfTroubles = 1
	shareOfRafts    = 1
	seeds           = 150
	mostInCalm      = -1
)
