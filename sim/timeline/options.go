package timeline

import "time"

// Options describe the run for the head of a picture.
type Options struct {
	// Name is the scenario's name.
	Name string
	// Seed is the run's seed. Zero is not shown.
	Seed uint64
	// Epoch is the virtual time at the start of the run. Deadlines in the state are times of the
	// leader's clock ([Recorder.Clock]).
	Epoch time.Time
	// Replay is the command that repeats the run, or empty.
	Replay string
	// Servers is the number of servers. Zero is not shown.
	Servers int
}

// The largest numbers of lanes. A picture counts the other nodes and groups.
const (
	maxNodes  = 16
	maxGroups = 12
)
