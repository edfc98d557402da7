// Command bench measures what the drainer costs, and says whether that is within its
// bounds.
//
//	go run ./bench [-size small|full] [-json] [-run RE] [-counts] [-pairs N] [-fail all|counts] [-cpuprofile FILE]
//	go run ./bench -table FILE...
//
// It runs the benchmarks whose names begin with Figure, here and beside what they
// measure, and prints one table of figure, bound and verdict. The exit code is 1 if a
// bound is broken or a benchmark fails, the rest being printed; with -fail counts it is 0
// if ratios alone are broken, which a busy machine may do. Each figure has a process and a
// time limit of its own. It needs the go command, since the benchmarks are Go benchmarks:
// each can be run alone with go test -bench.
//
// A figure is a count, of wake-ups, rows, entries or bytes, which is the same on every
// machine, or a ratio of CPU to a baseline of the same run: see package
// internal/measure for how it is come by, and for what makes a verdict unclear. The
// bounds are in bounds.go. With -counts only figures that are counted are measured.
//
// With -run only some figures are measured: names as they stand in bounds.go, separated
// by |, each with as many of its parts as matter, and each part a regular expression.
// Parts of a figure's name are matched anywhere: 'drains/cpu/max_parallel=1$/100-of-1000-'
// is one case, and what is in parentheses is measured in one process, which makes ready but
// once what several figures need: 'drains/(cpu|free)/max_parallel=1$'. The largest are measured for minutes each: with -pairs a ratio is the
// median of fewer, or more, than the five that bounds speak of. The table says of how many.
//
// The full size takes an hour and more, and may be measured in parts, each with -json into
// a file of its own: with -table the files are put together, and printed as one table in
// Markdown. What was measured until an interrupt (SIGINT) came is printed.
//
// With -cpuprofile the work of one ratio of CPU is run once more and profiled: one, and so
// -run has to say which. Its pauses, in which others are played, are in the profile
// without the label that the rest has:
//
//	go run ./bench -size full -run 'drains/cpu/max_parallel=1$/1000-of' -cpuprofile FILE
//	go tool pprof -tagfocus measured FILE
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command: it returns its exit code, 2 if it could not measure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.String("size", string(measure.Small), "small, which takes some minutes, or full, which takes an hour and more")
	match := flags.String("run", "", "measure these figures alone, such as 'idle|changed/rows'")
	asJSON := flags.Bool("json", false, "print one object in JSON and nothing else")
	pairs := flags.String("pairs", "", "measure so many pairs for each ratio, an odd number from 3 on (default 5)")
	fail := flags.String("fail", failAll, "all, or counts: which broken bounds make the exit code 1")
	counts := flags.Bool("counts", false, "measure counts alone, which are the same on every machine")
	profile := flags.String("cpuprofile", "", "write a profile of the CPU of the work of one ratio to this file, which must not be there yet")
	table := flags.Bool("table", false, "measure nothing: put together what was printed with -json into these files")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *table {
		return tabulate(flags.Args(), stdout, stderr)
	}
	s, err := measure.ParseSize(*size)
	p, errPairs := measure.ParsePairs(*pairs)
	if err := errors.Join(err, errPairs); err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench:", err, flags.Args())
		return 2
	}
	if *fail != failAll && *fail != failCounts {
		fmt.Fprintf(stderr, "bench: -fail takes %s or %s, not %q\n", failAll, failCounts, *fail)
		return 2
	}
	bounds, some := bounds(), *match != ""
	if some && *counts {
		fmt.Fprintln(stderr, "bench: -run and -counts both say what is measured: give one of them")
		return 2
	}
	if *counts {
		bounds = slices.DeleteFunc(bounds, func(b bound) bool { return !b.count() })
	}
	if *profile != "" && !some {
		fmt.Fprintln(stderr, "bench: -cpuprofile is of one figure: say with -run of which")
		return 2
	}
	figures := benchmarks{size: s, pairs: p, figures: names(bounds), progress: stderr, profile: *profile}
	if some {
		figures.figures = alternatives(*match)
	}
	results, err := figures.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	report, err := judge(figures, bounds, results, some)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	return report.conclude(stdout, stderr, *asJSON, *fail == failCounts)
}

// What -fail takes.
const (
	failAll    = "all"
	failCounts = "counts"
)

// conclude prints the report, and returns the exit code.
func (r *report) conclude(stdout, stderr io.Writer, asJSON, countsOnly bool) int {
	write := r.writeTable
	if asJSON {
		write = r.writeJSON
	}
	switch err := write(stdout); {
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	case r.fails(countsOnly):
		return 1
	}
	return 0
}

// alternatives splits what -run was given at each | that is not in parentheses: those are
// of the regular expression of one part of a name.
func alternatives(match string) (all []string) {
	depth, from := 0, 0
	for i, c := range match {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			all = append(all, match[from:i])
			from = i + 1
		}
	}
	return append(all, match[from:])
}

// names are those of the benchmarks that have bounds, as -bench takes them, each once.
func names(bounds []bound) []string {
	var all, names []string
	for _, b := range bounds {
		if slices.ContainsFunc(all, func(n string) bool { return b.name == n || strings.HasPrefix(b.name, n+"/") }) {
			continue
		}
		all = append(all, b.name)
		names = append(names, "^"+strings.ReplaceAll(b.name, "/", "$/^")+"$")
	}
	return names
}
