// Package measure compares the cost of two pieces of work on a machine that is not
// quiet. A figure is either a count, which does not depend on the machine, or a ratio
// of CPU to that of a baseline in the same run, which depends on it little.
//
// # Pairs
//
// The baseline and the work are measured in turn, [DefaultPairs] times, and each pair gives
// one ratio: whatever slows the machine for a minute slows both sides of a pair. Work that
// takes seconds is sliced, see [CompareSliced]: so does what slows it for a second. The
// figure is the median. The ratios next to it on either side, [Ratio].Low and High, say
// how far it can be believed: see [Ratio.Verdict].
//
// # CPU
//
// What is measured is the CPU of the whole process, so that work on several
// goroutines counts, and waiting does not. The garbage collector does not run
// meanwhile: when it runs is chance, and what it costs depends on the heap around,
// which a benchmark makes up. What it takes afterwards to collect what the work has
// left is told apart.
package measure
