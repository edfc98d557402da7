// Command find measures planted bugs and writes down what it finds.
//
//	go run ./sim/planted/find survive [NAME...]
//	go run ./sim/planted/find swarm [NAME...]
//
// It runs at the top of the repository. Survive runs the ordinary tests against
// each bug, which takes minutes for one that they do not find. Without names it
// measures what has not been measured yet. The table in sim/planted/FOUND.md is
// written after each bug.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const (
	folder = "sim/planted/bugs"
	found  = "sim/planted/FOUND.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "survive" {
		return fmt.Errorf("usage: find survive|swarm [NAME...]")
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bugs, err := planted.Load(os.DirFS(folder))
	if err != nil {
		return err
	}
	survey, err := planted.NewSurvey(root, dir)
	if err != nil {
		return err
	}
	for _, b := range bugs {
		if len(args) > 1 && !slices.Contains(args[1:], b.Name) {
			continue
		}
		measured, err := measured()
		if err != nil {
			return err
		}
		table := measured.Match(bugs)
		row := table.Row(b.Name)
		if len(args) == 1 && row.Test != "" {
			continue
		}
		if row.Test, err = survey.Try(ctx, b); err != nil {
			fmt.Printf("%s: %v\n", b.Name, err)
			continue
		}
		fmt.Println(b.Name, row.Test)
		if err := write(table); err != nil {
			return err
		}
	}
	return nil
}

func measured() (planted.Table, error) {
	text, err := os.ReadFile(found)
	if err != nil {
		return nil, err
	}
	return planted.ReadTable(string(text))
}

func write(t planted.Table) error {
	text, err := os.ReadFile(found)
	if err != nil {
		return err
	}
	after, err := planted.WriteTable(string(text), t)
	if err != nil {
		return err
	}
	return os.WriteFile(found, []byte(after), 0o644)
}
