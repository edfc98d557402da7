//go:build race

package live_test

// The race detector makes a bubble seven times as dear. What is played with it is a share,
// the same every time, in which every kind of goroutine and of trouble comes many times;
// all of it is played without.
const (
	shareOfTroubles = 5
	shareOfRafts    = 3
	seeds           = 12
)
