//go:build race

package drainer

// The race detector makes each world several times as dear, and no property has
// more than one goroutine.
const (
	checks    = "500"
	chaosRuns = 60
)
