//go:build race

package live_test

// The race detector makes a bubble seven times as dear. What is played with it is a share,
// the same every time, in which every kind of goroutine and of trouble comes many times;
// all of it is played without. A scenario that can take no trouble is played without any
// where the others are played with it, since CI leaves out the test that plays all so; not
// that of ten thousand allocations, which takes as long as all others together.
const (
	shareOfTroubles = 5
	shareOfRafts    = 3
	seeds           = 12
	mostInCalm      = 1000
)
