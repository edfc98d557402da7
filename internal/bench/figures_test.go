package main

import "testing"

// measuredFigure is a figure with the function that measures it.
type measuredFigure struct {
	name    string
	measure func(*testing.B)
}

// figures returns the figures of this package.
func figures() []measuredFigure {
	return []measuredFigure{
		{"unconcerned", figureUnconcerned},
		{"changed", figureChanged},
		{"idle", figureIdle},
		{"memory", figureMemory},
		{"month", figureMonth},
		{"drains", figureDrains},
		{"claims", figureClaims},
		{"real-clients", figureRealClients},
		{"node", figureNode},
	}
}

// BenchmarkFigure measures all figures.
func BenchmarkFigure(b *testing.B) {
	for _, f := range figures() {
		b.Run(f.name, f.measure)
	}
}
