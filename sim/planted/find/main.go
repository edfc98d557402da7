// Command find searches for planted bugs with seeds, scenarios and tests. After each bug it writes
// into sim/planted/FOUND.md which of them found it. It runs at the top of the repository; see
// package planted.
//
//	go run ./sim/planted/find [-seeds N] [-stale] [NAME...]
//
// With -stale it leaves out the bugs that their rows still find.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

const (
	bugsFolder = "sim/planted/bugs"
	tableFile  = "sim/planted/FOUND.md"
)

func main() {
	seeds := flag.Int("seeds", 3000, "how many small `seeds` to play at most")
	stale := flag.Bool("stale", false, "leave out the bugs that their rows still find")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *seeds, *stale, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run finds the named bugs, or all. A bug that is not found does not stop the others.
func run(ctx context.Context, seeds int, stale bool, names []string) (err error) {
	bugs, err := planted.Load(os.DirFS(bugsFolder))
	if err != nil {
		return err
	}
	table, err := read()
	if err != nil {
		return err
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
	h, err := newHunter(ctx, root, dir, seeds, bugs)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range bugs {
		if len(names) > 0 && !slices.Contains(names, b.Name) {
			continue
		}
		row, found, err := planted.Row{}, false, error(nil)
		if stale {
			row, found, err = h.again(ctx, b, table.Row(b.Name))
		}
		if !found && err == nil {
			row, err = h.find(ctx, b)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", b.Name, err))
			continue
		}
		fmt.Printf("%s: %s %s\n", b.Name, row.Found, row.Check)
		table = table.Set(row).Match(bugs)
		if err := os.WriteFile(tableFile, []byte(table.String()), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// read reads the table. Without a file it is empty.
func read() (planted.Table, error) {
	text, err := os.ReadFile(tableFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return planted.ReadTable(string(text))
}
