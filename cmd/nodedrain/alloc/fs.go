package alloc

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// FSCommand is "nodedrain alloc fs".
type FSCommand struct{ cli.Base }

// FSFlags are its flags.
type FSFlags struct {
	cli.ConnectFlags
	stat, exact bool
}

func (f *FSFlags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("alloc fs", flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.BoolVar(&f.stat, "stat", false, "")
	set.BoolVar(&f.exact, "H", false, "")
	return set
}

func (c *FSCommand) Synopsis() string { return "Show files of an allocation" }

func (c *FSCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain alloc fs [options] ALLOC [PATH]

  Lists the folder PATH of an allocation, or prints the file PATH. Without PATH, lists the
  folder of the allocation: "alloc" is shared by its tasks, with the logs in "alloc/logs",
  and each task has a folder of its own. ALLOC is the allocation's id or a prefix of it.

Options:

  -stat             Describe the file or folder instead.
  -H                Show sizes in bytes, and exact times in UTC.
` + cli.ConnectHelp)
}

func (c *FSCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *FSCommand) run(args []string) error {
	var f FSFlags
	about, err := cli.ParseArguments(f.Set(), "alloc fs", args)
	switch {
	case err != nil:
		return err
	case len(about) == 0 || len(about) > 2:
		return cli.UsageError("alloc fs", "This command takes one or two arguments: <alloc> [<path>]")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	stub, err := allocs(&c.Base, asked, false).Find(about[0])
	if err != nil {
		return err
	}
	return c.show(asked.Alloc(stub.ID), &f, strings.Join(about[1:], ""))
}

// show describes a path, lists it or prints it. An empty path is the folder of the allocation.
func (c *FSCommand) show(a client.Alloc, f *FSFlags, path string) error {
	path = cmp.Or(path, "/")
	info, err := a.Stat(c.Ctx, path)
	switch {
	case err != nil:
		return cli.Errorf("Error reading %s: %v", path, err)
	case f.stat:
		t := cli.NewTable("Mode", "Size", "Modified Time", "Content Type", "Name")
		t.Row(info.FileMode, f.size(info), f.modified(info), cmp.Or(info.ContentType, "-"), info.Name)
		t.Write(c.Out)
		return nil
	case info.IsDir:
		return c.list(a, f, path)
	}
	file, err := a.Open(c.Ctx, path)
	if err != nil {
		return cli.Errorf("Error reading file: %v", err)
	}
	defer file.Close()
	if _, err := io.Copy(c.Out, file); err != nil {
		return cli.Errorf("Error reading file: %v", err)
	}
	return nil
}

func (c *FSCommand) list(a client.Alloc, f *FSFlags, path string) error {
	files, err := a.Files(c.Ctx, path)
	if err != nil {
		return cli.Errorf("Error listing %s: %v", path, err)
	}
	t := cli.NewTable("Mode", "Size", "Modified Time", "Name")
	for _, info := range files {
		name := info.Name
		if info.IsDir {
			name += "/"
		}
		t.Row(info.FileMode, f.size(info), f.modified(info), name)
	}
	t.Write(c.Out)
	return nil
}

func (f *FSFlags) size(info wire.FileInfo) string {
	if f.exact {
		return fmt.Sprint(info.Size)
	}
	return cli.BytesText(uint64(max(info.Size, 0)))
}

func (f *FSFlags) modified(info wire.FileInfo) string {
	if f.exact {
		return info.ModTime.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	return cli.TimeCell(info.ModTime)
}

// AutocompleteArgs completes the allocation.
func (c *FSCommand) AutocompleteArgs() complete.Predictor { return c.Ids("allocs") }

// AutocompleteFlags completes the flags.
func (c *FSCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(FSFlags).Set())
}
