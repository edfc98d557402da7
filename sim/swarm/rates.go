package swarm

// Rate is in how many runs an event has to happen.
type Rate struct {
	Event Event
	// What says what it is, in words.
	What string
	// Least is in which share of the runs of each size it happens at least.
	Least [sizeCount]float64
}

// Rates are the rates that swarms are held to.
func Rates() []Rate { return nil }
