//go:build !race

package e2e

// memoryFactor is one where nothing is watched.
const memoryFactor = 1
