package timeline

import "time"

// Options say what the run is, for the head of a picture, and how much is drawn.
type Options struct {
	// Name is the scenario's name; empty is "simulation".
	Name string
	// Seed is what the run was drawn from. Zero drew nothing, and is not shown.
	Seed uint64
	// Epoch is the virtual time at which the run begins: deadlines are drawn where the
	// state has them, by the clock of who leads ([Recorder.Clock]). Without it they are
	// taken to count from when their entry was applied.
	Epoch time.Time
	// Replay is the command that repeats the run, or empty.
	Replay string
	// Servers is how many there are; zero is not shown.
	Servers int
	// MaxNodes and MaxGroups bound the lanes that are drawn; the others are counted.
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
