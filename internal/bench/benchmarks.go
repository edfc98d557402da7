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

// packages are the packages with benchmarks.
var packages = [...]string{"./internal/bench", "./statestore"}

// benchmarks is one run of benchmarks.
type benchmarks struct {
	size measure.Size
	// pairs is the number of pairs of a ratio.
	pairs int
	// figures are the names of the figures to run as patterns for -bench: regular expressions
	// separated by slashes.
	figures []string
	// progress receives the output of the benchmarks. It is never nil.
	progress io.Writer
	// commit is the checked-out commit, or empty if it is unknown.
	commit string
}

// result is one benchmark's metrics, by unit.
type result struct {
	// Name is the benchmark's name without "Figure/" and without the number of processors.
	Name    string
	Metrics map[string]float64
	// Failed is the error of a benchmark that failed, or nil. With an error, Name is the pattern of
	// the figure. Metrics that the benchmark reported before its failure are in results of their
	// own.
	Failed error
}

// run runs the benchmarks one after the other and returns their results in order. When the context
// ends, the current benchmark fails and later ones do not run. After an error no benchmark has run.
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
			some, err := b.runOne(ctx, program, figure)
			results = append(results, some...)
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

// runOne runs one figure in a separate process, so that a figure that fails or hangs does not affect
// others. With an error it also returns the results so far.
func (b benchmarks) runOne(ctx context.Context, program, figure string) ([]result, error) {
	command := exec.CommandContext(ctx, program,
		"-test.run", "^$", "-test.bench", pattern(figure), "-test.benchtime", "1x", "-test.timeout", b.timeout().String())
	command.Env = append(os.Environ(), measure.SizeVariable+"="+string(b.size), measure.PairsVariable+"="+strconv.Itoa(b.pairs))
	var output bytes.Buffer
	command.Stdout = io.MultiWriter(&output, b.progress)
	command.Stderr = b.progress
	failed := command.Run()
	results, err := parse(&output, runtime.GOMAXPROCS(0))
	return results, errors.Join(failed, err)
}

// commit returns the checked-out commit, with the suffix -dirty if files are changed. If git fails,
// it returns an empty text.
func commit(ctx context.Context) string {
	output, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

// timeout returns the time limit of one figure.
func (b benchmarks) timeout() time.Duration {
	if b.size == measure.Full {
		return 3 * time.Hour
	}
	return 20 * time.Minute
}

// pattern returns the value of -bench.
func pattern(figure string) string { return "^BenchmarkFigure$/" + figure }

// parse reads the output of benchmarks that ran with so many processors.
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
			if v.OrigUnit != "" { // the unit before benchfmt converted it
				unit, value = v.OrigUnit, v.OrigValue
			}
			r.Metrics[unit] = value
		}
		results = append(results, r)
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("reading the output of the benchmarks: %w", err)
	}
	return results, nil
}

// nameOf returns the figure's name. Go appends the number of processors unless it is 1.
func nameOf(record *benchfmt.Result, processors int) string {
	name := record.Name.String()
	if processors > 1 {
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(processors))
	}
	return strings.TrimPrefix(name, "Figure/")
}
