// Command bench measures what the drainer costs, and says whether that is within its
// bounds.
//
//	go run ./bench [-size small|full] [-json] [-run RE] [-counts]
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

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

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
	size := flags.String("size", string(measure.Small), "small, which takes some minutes, or full, which takes up to an hour")
	match := flags.String("run", "", "run the figures that match this regular expression, of those that there are")
	asJSON := flags.Bool("json", false, "print one object in JSON and nothing else")
	counts := flags.Bool("counts", false, "let nothing but counts decide the exit code")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	s, err := measure.ParseSize(*size)
	if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "bench:", err, flags.Args())
		return 2
	}
	results, err := benchmarks{size: s, match: *match, progress: stderr}.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	report, err := judge(s, bounds(), results, *match != "")
	if err == nil && *asJSON {
		err = report.writeJSON(stdout)
	} else if err == nil {
		err = report.writeTable(stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	case report.broken(*counts):
		return 1
	}
	return 0
}
