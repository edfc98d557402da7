// Command hunt plays seeds until one fails, and shrinks what fails. It is built with
// a bug planted in it: see package planted.
//
//	hunt -first 1 -seeds 10000 -size small
//
// It prints a JSON object: how many seeds it played, and of the one that failed which
// check it failed and how many events are left of its scenario.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

func main() {
	first := flag.Uint64("first", swarm.DefaultFirst, "the first seed")
	seeds := flag.Int("seeds", swarm.DefaultSeeds, "how many seeds to play at most")
	size := flag.String("size", "small", "how large the clusters are")
	patience := flag.Duration("patience", time.Minute, "how long to shrink at most; zero does not")
	flag.Parse()
	catch, err := hunt(*first, *seeds, *size, *patience)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(catch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hunt plays seeds until one fails.
func hunt(first uint64, seeds int, name string, patience time.Duration) (planted.Catch, error) {
	size, err := swarm.ParseSize(name)
	if err != nil {
		return planted.Catch{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	report, _ := swarm.Play(ctx, swarm.Options{First: first, Seeds: seeds, Size: size, Each: func(r swarm.Run) {
		if r.Failure != nil {
			stop() // what is played already goes on to its end
		}
	}})
	if len(report.Failures) == 0 {
		return planted.Catch{Seeds: report.Seeds}, nil
	}
	failure := report.Failures[0]
	catch := planted.Catch{Seeds: int(failure.Seed-first) + 1, Seed: failure.Seed, Check: string(failure.Kind), Text: failure.Text}
	if failure.Kind != swarm.Violated {
		return catch, nil
	}
	v := failure.Violations[0]
	catch.Check, catch.Text = v.Guarantee+" "+v.Check, v.Text
	if patience > 0 {
		catch.Events, catch.Scenario, err = smallest(swarm.Generate(failure.Seed, size), catch.Check, patience)
	}
	return catch, err
}

// smallest is how many events are left of a scenario that fails a check, and what is
// left; none if it does not fail when it is played again.
func smallest(s *scenario.Scenario, check string, patience time.Duration) (events int, left string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	small, report, err := shrink.Shrink(ctx, s, play, shrink.Options{Check: check})
	switch {
	case errors.Is(err, shrink.ErrPasses):
		return 0, "", nil // a bug may take turns: the order of a map, say
	case err != nil:
		return 0, "", fmt.Errorf("shrinking: %w", err)
	}
	var text strings.Builder
	err = scenario.Print(&text, small)
	return report.After.Events, text.String(), err
}

// play plays a scenario for the shrinker.
func play(s *scenario.Scenario) shrink.Outcome {
	result, err := sim.Play(s, sim.Options{})
	if err != nil {
		return shrink.Outcome{}
	}
	var outcome shrink.Outcome
	seen := map[string]bool{}
	for _, v := range result.Violations {
		if check := v.Guarantee + " " + v.Check; !seen[check] {
			seen[check] = true
			outcome.Failures = append(outcome.Failures, shrink.Failure{Check: check, Text: v.Text})
		}
	}
	return outcome
}
