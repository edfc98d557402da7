// Package measure compares the cost of two pieces of work on a machine that runs other jobs too.
// A figure is a count, which is the same on every machine, or a ratio of CPU times of the same
// run, which depends little on the machine.
//
// # Pairs
//
// [Compare] measures the baseline and the work in turn, [DefaultPairs] times. Each pair gives one
// ratio: a slow minute slows both sides of a pair. [CompareSliced] alternates between the sides
// within a pair, for work that takes seconds. The figure is the median of the ratios with its
// confidence interval, [Ratio].Low and High, from golang.org/x/perf/benchmath. [Ratio.Verdict]
// compares the interval with a bound.
//
// # CPU
//
// The measured time is the CPU time of the whole process. So work on several goroutines counts and
// waiting does not. The garbage collector is off during measurements: its runs happen at random
// times, and their cost depends on the rest of the heap, which a benchmark makes up. The cost to
// collect the garbage of the work is a number of its own, [Cost].GC.
package measure
