package remote

// For tests.
var (
	Failed    = (*Failures).failed
	Succeeded = (*Failures).succeeded
)
