// Command bench measures the cost of the drainer and compares it with bounds.
//
//	go run ./internal/bench [-size small|full] [-run RE...] [-counts] [-pairs N]
//
// It runs the Go benchmarks BenchmarkFigure of this package and of the packages that they measure,
// and prints one table of figures, bounds and verdicts in Markdown. Each figure runs in its own process with its
// own time limit. A benchmark that fails is a broken figure. The exit code is 1 if a figure is broken.
// The command needs the go command and, for the commit in the report, git.
//
// A figure is a count or a ratio. A count of wake-ups, rows, entries or bytes is the same on every
// machine. A ratio compares CPU time with that of a baseline in the same run. Package internal/measure
// describes ratios and verdicts. The bounds are in bounds.go. With -counts the command measures only
// counts.
//
// With -run it measures some figures: names from bounds.go, separated by blanks. Each part of a name is
// a regular expression that matches anywhere, and parts at the end may be omitted:
// 'drains/cpu/max_parallel=1$/100-of-1000-' is one case. Figures in parentheses share a process
// and its preparation: 'drains/(cpu|free)/max_parallel=1$'. -pairs changes the number of pairs of a
// ratio. The largest figures take minutes for each pair.
//
// The full size takes hours. You can measure it in parts. After an interrupt (SIGINT) the command prints
// the figures so far.
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

// run runs the command. It returns the exit code: 1 if a figure is broken, 2 if it cannot measure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.String("size", string(measure.Small), "small, which takes some minutes, or full, which takes hours")
	match := flags.String("run", "", "measure only these figures, for example 'idle changed/rows'")
	pairs := flags.String("pairs", "", fmt.Sprintf("the number of pairs of each ratio, %d or more (default %d)", measure.MinPairs, measure.DefaultPairs))
	counts := flags.Bool("counts", false, "measure only counts, which are the same on every machine")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	s, err := measure.ParseSize(*size)
	p, errPairs := measure.ParsePairs(*pairs)
	if err := errors.Join(err, errPairs); err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench:", err, flags.Args())
		return 2
	}
	bounds, some := bounds(), *match != ""
	if some && *counts {
		fmt.Fprintln(stderr, "bench: use -run or -counts, not both")
		return 2
	}
	if *counts {
		bounds = slices.DeleteFunc(bounds, func(b bound) bool { return !b.count() })
	}
	figures := benchmarks{size: s, pairs: p, figures: names(bounds), progress: stderr}
	if some {
		figures.figures = strings.Fields(*match)
	}
	figures.commit = commit(ctx)
	results, err := figures.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	report, err := newReport(figures, bounds, results, some)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	if err := report.write(stdout); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	return min(1, report.Broken)
}

// names returns the names of the bounded benchmarks as patterns for -bench, without duplicates.
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
