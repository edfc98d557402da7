//go:build !race

package e2e

// memoryFactor is one without the race detector.
const memoryFactor = 1
