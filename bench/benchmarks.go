package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// packages hold the benchmarks: what can be measured from outside is measured here.
var packages = [...]string{"./bench", "./statestore"}

// benchmarks are those to run.
type benchmarks struct {
	size measure.Size
	// pairs is how many a ratio is the median of.
	pairs int
	// figures are the names of those to run, each as -bench takes it: regular expressions
	// with slashes between them.
	figures []string
	// progress is told what the benchmarks say; never nil.
	progress io.Writer
	// profile is the file for a profile, or empty.
	profile string
}

// result is one benchmark's metrics, by unit.
type result struct {
	// Name is without "Figure/" and the number of processors.
	Name    string
	Metrics map[string]float64
	// Failed is why there are no metrics, or nil. The name then is as the figure was asked
	// for: what it had reported until then are results of their own.
	Failed error
}

// run runs the benchmarks, one after the other, and returns what they report in their
// order. Those that the context's end interrupts have failed, and those after them are not
// begun. The error is that nothing could be run.
func (b benchmarks) run(ctx context.Context) ([]result, error) {
	dir, err := os.MkdirTemp("", "nodedrain-bench-")
	if err != nil {
		return nil, fmt.Errorf("building the benchmarks: %w", err)
	}
	defer os.RemoveAll(dir)
	var programs []string
	for i, p := range packages {
		programs = append(programs, filepath.Join(dir, strconv.Itoa(i)+".test"))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-o", programs[i], p)
		build.Stdout, build.Stderr = b.progress, b.progress
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("building the benchmarks of %s: %w", p, err)
		}
	}
	var results []result
	for _, figure := range b.figures {
		for _, program := range programs {
			of, err := b.runOne(ctx, program, figure)
			results = append(results, of...)
			if err != nil {
				results = append(results, result{Name: figure, Failed: err})
			}
			if ctx.Err() != nil {
				return results, nil
			}
		}
	}
	return results, nil
}

// runOne runs one figure in a process of its own, so that one that fails or hangs takes
// no other with it. It returns what was reported, whatever the error.
func (b benchmarks) runOne(ctx context.Context, program, figure string) ([]result, error) {
	command := exec.CommandContext(ctx, program,
		"-test.run", "^$", "-test.bench", pattern(figure), "-test.benchtime", "1x", "-test.timeout", b.patience().String())
	command.Env = append(os.Environ(), measure.SizeVariable+"="+string(b.size), measure.PairsVariable+"="+strconv.Itoa(b.pairs), measure.ProfileVariable+"="+b.profile)
	var output bytes.Buffer
	command.Stdout = io.MultiWriter(&output, b.progress)
	command.Stderr = b.progress
	failed := command.Run()
	results, err := parse(&output, runtime.GOMAXPROCS(0))
	return results, errors.Join(failed, err)
}

// patience is how long one figure may take.
func (b benchmarks) patience() time.Duration {
	if b.size == measure.Full {
		return 3 * time.Hour
	}
	return 20 * time.Minute
}

// pattern is what -bench is given.
func pattern(figure string) string { return "^BenchmarkFigure$/" + figure }

// parse reads what go test prints of benchmarks that run on so many processors.
func parse(output io.Reader, processors int) ([]result, error) {
	var results []result
	reader := benchfmt.NewReader(output, "the benchmarks")
	for reader.Scan() {
		record, is := reader.Result().(*benchfmt.Result)
		if !is {
			continue
		}
		r := result{Name: nameOf(record, processors), Metrics: map[string]float64{}}
		for _, v := range record.Values {
			unit, value := v.Unit, v.Value
			if v.OrigUnit != "" { // as it was reported
				unit, value = v.OrigUnit, v.OrigValue
			}
			r.Metrics[unit] = value
		}
		results = append(results, r)
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("reading what the benchmarks report: %w", err)
	}
	return results, nil
}

// nameOf is the figure's name. The number of processors follows it, unless it is one: what
// then looks like it belongs to the name.
func nameOf(record *benchfmt.Result, processors int) string {
	name := record.Name.String()
	if processors > 1 {
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(processors))
	}
	return strings.TrimPrefix(name, "Figure/")
}
