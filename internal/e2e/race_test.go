//go:build race

package e2e

// memoryFactor is by how much the race detector's own bookkeeping lets memory grow.
const memoryFactor = 8
