package main

import "testing"

type measuredFigure struct {
	name    string
	measure func(*testing.B)
}

func figures() []measuredFigure {
	return []measuredFigure{
		{"unconcerned", figureUnconcerned},
		{"changed", figureChanged},
		{"idle", figureIdle},
		{"memory", figureMemory},
		{"month", figureMonth},
		{"drains", figureDrains},
		{"claims", figureClaims},
		{"plans", figurePlans},
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
