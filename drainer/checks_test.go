//go:build !race

package drainer

const (
	checks    = "2000"
	chaosRuns = 300
)
