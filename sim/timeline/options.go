package timeline

import "time"

// Options describe the run for the head of a picture, and limit the picture.
type Options struct {
	// Name is the scenario's name; empty is "simulation".
	Name string
	// Seed is the run's seed. Zero is not shown.
	Seed uint64
	// Epoch is the virtual time at the start of the run. With it, the recorder reads deadlines
	// from the state, as times of the leader's clock ([Recorder.Clock]). If it is zero,
	// deadlines count from the apply of their entry.
	Epoch time.Time
	// Replay is the command that repeats the run, or empty.
	Replay string
	// Servers is the number of servers. Zero is not shown.
	Servers int
	// MaxNodes and MaxGroups limit the lanes. A picture counts the other nodes and groups.
	// Zero is [DefaultMaxNodes] and [DefaultMaxGroups].
	MaxNodes, MaxGroups int
}

// The defaults of [Options].
const (
	DefaultMaxNodes  = 16
	DefaultMaxGroups = 12
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "simulation"
	}
	if o.MaxNodes <= 0 {
		o.MaxNodes = DefaultMaxNodes
	}
	if o.MaxGroups <= 0 {
		o.MaxGroups = DefaultMaxGroups
	}
	return o
}
