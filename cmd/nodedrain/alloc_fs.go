package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// allocFSCommand is "nodedrain alloc fs".
type allocFSCommand struct{ operatorCommand }

// allocFSFlags are its flags.
type allocFSFlags struct {
	connectFlags
	stat, exact bool
}

func (f *allocFSFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("alloc fs", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.stat, "stat", false, "")
	set.BoolVar(&f.exact, "H", false, "")
	return set
}

func (c *allocFSCommand) Synopsis() string { return "Show files of an allocation" }

func (c *allocFSCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc fs [options] ALLOC [PATH]

  Lists the folder PATH of an allocation, or prints the file PATH. Without PATH, lists the
  folder of the allocation: "alloc" is shared by its tasks, with the logs in "alloc/logs",
  and each task has a folder of its own. ALLOC is the allocation's id or a prefix of it.

Options:

  -stat             Describe the file or folder instead.
  -H                Show sizes in bytes, and exact times in UTC.
` + connectHelp)
}

func (c *allocFSCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *allocFSCommand) run(args []string) error {
	var f allocFSFlags
	about, err := arguments(f.set(), "alloc fs", args)
	switch {
	case err != nil:
		return err
	case len(about) == 0 || len(about) > 2:
		return misused("alloc fs", "This command takes one or two arguments: <alloc> [<path>]")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	stub, err := allocs(&c.operatorCommand, asked, false).find(about[0])
	if err != nil {
		return err
	}
	return c.show(asked.Alloc(stub.ID), &f, strings.Join(about[1:], ""))
}

// show describes a path, lists it or prints it. An empty path is the folder of the allocation.
func (c *allocFSCommand) show(a client.Alloc, f *allocFSFlags, path string) error {
	path = cmp.Or(path, "/")
	info, err := a.Stat(c.ctx, path)
	switch {
	case err != nil:
		return saidf("Error reading %s: %v", path, err)
	case f.stat:
		t := newTable("Mode", "Size", "Modified Time", "Content Type", "Name")
		t.row(info.FileMode, f.size(info), f.modified(info), cmp.Or(info.ContentType, "-"), info.Name)
		t.write(c.out)
		return nil
	case info.IsDir:
		return c.list(a, f, path)
	}
	file, err := a.Open(c.ctx, path)
	if err != nil {
		return saidf("Error reading file: %v", err)
	}
	defer file.Close()
	if _, err := io.Copy(c.out, file); err != nil {
		return saidf("Error reading file: %v", err)
	}
	return nil
}

func (c *allocFSCommand) list(a client.Alloc, f *allocFSFlags, path string) error {
	files, err := a.Files(c.ctx, path)
	if err != nil {
		return saidf("Error listing %s: %v", path, err)
	}
	t := newTable("Mode", "Size", "Modified Time", "Name")
	for _, info := range files {
		name := info.Name
		if info.IsDir {
			name += "/"
		}
		t.row(info.FileMode, f.size(info), f.modified(info), name)
	}
	t.write(c.out)
	return nil
}

func (f *allocFSFlags) size(info wire.FileInfo) string {
	if f.exact {
		return fmt.Sprint(info.Size)
	}
	return bytesText(uint64(max(info.Size, 0)))
}

func (f *allocFSFlags) modified(info wire.FileInfo) string {
	if f.exact {
		return info.ModTime.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	return timeCell(info.ModTime)
}

// AutocompleteArgs completes the allocation.
func (c *allocFSCommand) AutocompleteArgs() complete.Predictor { return c.ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *allocFSCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(allocFSFlags).set())
}
