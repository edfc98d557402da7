// Command bench measures what the drainer costs, and says whether that is within its
// bounds.
//
//	go run ./bench [-size small|full] [-json]
//
// It runs the benchmarks whose names begin with Figure, here and beside what they
// measure, and prints one table of figure, bound and verdict. The exit code is 1 if a
// bound is broken. It needs the go command, since the benchmarks are Go benchmarks:
// each can be run alone with go test -bench.
//
// A figure is a count, of wake-ups, rows, entries or bytes, which is the same on every
// machine, or a ratio of CPU to a baseline of the same run: see package
// internal/measure for how it is come by, and for what makes a verdict unclear. The
// bounds are in bounds.go. With -counts only counts decide the exit code: that is what
// continuous integration runs, on whatever machine it has.
package main
