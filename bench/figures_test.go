package main

import "testing"

// BenchmarkFigure runs the figures that are measured from outside.
func BenchmarkFigure(b *testing.B) {
	b.Run("unconcerned", figureUnconcerned)
	b.Run("changed", figureChanged)
	b.Run("store", figureStore)
	b.Run("deadlines", figureDeadlines)
	b.Run("idle", figureIdle)
	b.Run("memory", figureMemory)
	b.Run("recheck", figureRecheck)
	b.Run("drains", figureDrains)
	b.Run("first-mark", figureFirstMark)
	b.Run("throughput", figureThroughput)
}
