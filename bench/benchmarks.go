package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// packages hold the benchmarks: what can be measured from outside is measured here.
var packages = [...]string{"./bench", "./statestore", "./drainer"}

// benchmarks are those to run.
type benchmarks struct {
	size measure.Size
	// pairs is how many a ratio is the median of.
	pairs int
	// figures are the names of those to run, each as -bench takes it: regular expressions
	// with slashes between them. None are all.
	figures []string
	// progress is told what go test says; never nil.
	progress io.Writer
}

// result is one benchmark's metrics, by unit.
type result struct {
	// Name is without "Figure/" and the number of processors.
	Name    string
	Metrics map[string]float64
}

// run runs the benchmarks, one after the other, and returns what they report in their
// order.
func (b benchmarks) run(ctx context.Context) ([]result, error) {
	args := append([]string{"test", "-run", "^$", "-bench", b.pattern(), "-benchtime", "1x", "-timeout", "3h", "-p", "1"}, packages[:]...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Env = append(os.Environ(), measure.SizeVariable+"="+string(b.size), measure.PairsVariable+"="+strconv.Itoa(b.pairs))
	var output bytes.Buffer
	command.Stdout = io.MultiWriter(&output, b.progress)
	command.Stderr = b.progress
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("running the benchmarks: %w", err)
	}
	return parse(&output)
}

// pattern is what -bench is given.
func (b benchmarks) pattern() string {
	const all = "^BenchmarkFigure$"
	if len(b.figures) == 0 {
		return all
	}
	patterns := make([]string, len(b.figures))
	for i, f := range b.figures {
		patterns[i] = all + "/" + f
	}
	return strings.Join(patterns, "|")
}

// parse reads what go test prints of benchmarks.
func parse(output io.Reader) ([]result, error) {
	var results []result
	reader := benchfmt.NewReader(output, "go test")
	for reader.Scan() {
		record, is := reader.Result().(*benchfmt.Result)
		if !is {
			continue
		}
		r := result{Name: nameOf(record), Metrics: map[string]float64{}}
		for _, v := range record.Values {
			r.Metrics[v.Unit] = v.Value
			if v.OrigUnit != "" {
				r.Metrics[v.OrigUnit] = v.OrigValue
			}
		}
		results = append(results, r)
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("reading what the benchmarks report: %w", err)
	}
	return results, nil
}

func nameOf(record *benchfmt.Result) string {
	base, parts := record.Name.Parts()
	name := string(base)
	for _, p := range parts {
		if !strings.HasPrefix(string(p), "-") { // the number of processors
			name += string(p)
		}
	}
	return strings.TrimPrefix(name, "Figure/")
}
