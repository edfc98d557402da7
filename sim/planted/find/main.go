// Command find measures planted bugs and writes down what it finds.
//
//	go run ./sim/planted/find survive [NAME...]
//	go run ./sim/planted/find hunt [-starts N] [-seeds N] [NAME...]
//
// It runs at the top of the repository. Survive runs the ordinary tests against each
// bug: seconds for one that the tests of its own package find, minutes for one that
// no test finds. Hunt builds the simulator with each bug and plays seeds until one fails,
// from three starts unless fewer are asked for. With -seeds it plays fewer seeds from each
// start, and gives up at the first start that does not find the bug. The row of the bug then
// stays as it is; if that was the first start and an ordinary test finds the bug, the row says
// so. Without names it measures what has not been measured. The table in sim/planted/FOUND.md
// is written after each bug.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const (
	folder = "sim/planted/bugs"
	table  = "sim/planted/FOUND.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("usage: find survive|hunt [-starts N] [-seeds N] [NAME...]")
	}
	starts := planted.Starts()
	flags := flag.NewFlagSet("find "+args[0], flag.ContinueOnError)
	from := flags.Int("starts", len(starts), "from how many `starts` a bug is hunted")
	seeds := flags.Int("seeds", planted.MaxSeeds, "how many `seeds` are played from each start at most")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *from < 1 || *from > len(starts) {
		return fmt.Errorf("there are 1 to %d starts, not %d", len(starts), *from)
	}
	if *seeds < 1 || *seeds > planted.MaxSeeds {
		return fmt.Errorf("1 to %d seeds can be played from a start, not %d", planted.MaxSeeds, *seeds)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f := &finder{root: root, dir: dir, names: flags.Args(), starts: starts[:*from], seeds: *seeds}
	switch args[0] {
	case "survive":
		return f.survive(ctx)
	case "hunt":
		return f.hunt(ctx)
	}
	return fmt.Errorf("%q is neither survive nor hunt", args[0])
}

// finder measures bugs one after the other.
type finder struct {
	root, dir string
	// names are the bugs to measure; none for all that have not been.
	names []string
	// starts are the seeds that hunts start from.
	starts []uint64
	// seeds is how many are played from each start at most.
	seeds int
}

// survive runs the ordinary tests against bugs.
func (f *finder) survive(ctx context.Context) error {
	survey, err := planted.NewSurvey(f.root, f.dir)
	if err != nil {
		return err
	}
	return f.each(
		func(r *planted.Row) bool { return r.Test != "" },
		func(b *planted.Bug, r *planted.Row) (said string, err error) {
			if r.Test, err = survey.Try(ctx, b); err == nil {
				r.TestedAt, err = f.commit(ctx)
			}
			return r.Test, err
		})
}

// commit is the short name of the commit that is checked out.
func (f *finder) commit(ctx context.Context) (string, error) {
	git := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD")
	git.Dir = f.root
	name, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("asking which commit is measured: %w", err)
	}
	return strings.TrimSpace(string(name)), nil
}

// hunt has the simulator look for bugs.
func (f *finder) hunt(ctx context.Context) error {
	control, err := planted.Control(ctx, f.root, f.dir)
	if err != nil {
		return err
	}
	return f.each(
		func(r *planted.Row) bool { return r.Starts > 0 },
		func(b *planted.Bug, r *planted.Row) (said string, err error) {
			dir, err := os.MkdirTemp(f.dir, b.Name)
			if err != nil {
				return "", err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			few, tested := f.seeds < planted.MaxSeeds, r.Test != "" && r.Test != planted.Survives
			catches, err := planted.Hunt{Control: control, Starts: f.starts, Seeds: f.seeds, GiveUp: few}.For(ctx, f.root, dir, b)
			if err != nil {
				return "", err
			}
			if last := catches[len(catches)-1]; few && last.Check == "" && (len(catches) > 1 || !tested) {
				return "", fmt.Errorf("%s was not found within %d seeds of start %d", b.Name, last.Seeds, len(catches))
			}
			r.Note(catches)
			if r.HuntedAt, err = f.commit(ctx); err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, %d of %d, %d seeds, %d operations", r.Invariant, r.Found, r.Starts, r.Seeds, r.Ops), nil
		})
}

// each measures bugs and writes the table after each. One that cannot be measured
// hinders no other.
func (f *finder) each(measured func(*planted.Row) bool, measure func(*planted.Bug, *planted.Row) (string, error)) error {
	bugs, err := planted.Load(os.DirFS(filepath.Join(f.root, folder)))
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range bugs {
		text, err := os.ReadFile(table)
		if err != nil {
			return err
		}
		known, err := planted.ReadTable(string(text))
		if err != nil {
			return err
		}
		rows := known.Match(bugs)
		row := rows.Row(b.Name)
		if asked := slices.Contains(f.names, b.Name); !asked && (len(f.names) > 0 || measured(row)) {
			continue
		}
		said, err := measure(b, row)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Printf("%s: %s\n", b.Name, said)
		after, err := planted.WriteTable(string(text), rows)
		if err != nil {
			return err
		}
		if err := os.WriteFile(table, []byte(after), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
