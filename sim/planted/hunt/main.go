// Command hunt plays small seeds, and then scenarios, until one fails. Command find builds it
// with the planted bugs.
//
//	hunt [-first S] -seeds N [FILE...]
//
// It prints a [planted.Row] in JSON with the one that failed, or an empty one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

func main() {
	first := flag.Uint64("first", 1, "the first `seed`")
	seeds := flag.Int("seeds", 0, "how many `seeds` to play at most")
	flag.Parse()
	row, err := hunt(*first, *seeds, flag.Args())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(row)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hunt(first uint64, seeds int, files []string) (planted.Row, error) {
	failure, err := firstFailure(first, seeds)
	if err != nil {
		return planted.Row{}, err
	}
	if failure != nil {
		return row(fmt.Sprintf("seed %d", failure.Seed), failure.Violations, string(failure.Kind)), nil
	}
	for _, file := range files {
		violations, err := play(file)
		if err != nil {
			return planted.Row{}, err
		}
		if len(violations) > 0 {
			return row("scenario "+strings.TrimSuffix(filepath.Base(file), ".drain"), violations, ""), nil
		}
	}
	return planted.Row{}, nil
}

// row names the first violation, or the kind of failure if there is none.
func row(found string, violations []invariant.Violation, kind string) planted.Row {
	if len(violations) == 0 {
		return planted.Row{Found: found, Check: kind}
	}
	return planted.Row{Found: found, Check: violations[0].Guarantee + " " + violations[0].Check}
}

// firstFailure plays seeds until one fails.
func firstFailure(from uint64, seeds int) (first *swarm.Failure, err error) {
	if seeds == 0 {
		return nil, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	_, err = swarm.Play(ctx, swarm.Options{First: from, Seeds: seeds, Size: swarm.Small, Each: func(r swarm.Run) {
		if r.Failure != nil && first == nil {
			first = r.Failure
			stop()
		}
	}})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return first, err
}

// play returns the violations of a scenario.
func play(file string) ([]invariant.Violation, error) {
	text, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	s, _, err := scenario.Parse(file, text)
	if err != nil {
		return nil, err
	}
	result, err := sim.Play(s, sim.Options{})
	if err != nil {
		return nil, err
	}
	return result.Violations, nil
}
