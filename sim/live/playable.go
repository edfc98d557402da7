package live

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Unplayable says, in words of the language and with the reason, what of a scenario
// cannot be played with goroutines; nil if nothing.
func Unplayable(s *scenario.Scenario) []string {
	var why []string
	for _, e := range s.Events {
		if _, is := e.Op.(*scenario.Clock); is {
			why = append(why, "clock: all goroutines of a process read one clock, and a bubble's cannot be set")
		}
	}
	return slices.Compact(why)
}
