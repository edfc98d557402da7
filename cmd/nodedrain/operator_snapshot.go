package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/archive"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const operatorHelp = `Usage: nodedrain operator <command> [options]

  Commands for the operators of the servers.`

const snapshotHelp = `Usage: nodedrain operator snapshot <command> [options]

  Saves the state of the servers to a file, restores it, and shows the content of a file.
  The file holds the secrets of the nodes: protect it like the data directory of a server.`

// snapshotSaveCommand is "nodedrain operator snapshot save".
type snapshotSaveCommand struct{ operatorCommand }

// snapshotSaveFlags are its flags.
type snapshotSaveFlags struct {
	connectFlags
	stale bool
}

func (f *snapshotSaveFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("operator snapshot save", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.stale, "stale", false, "")
	return set
}

func (c *snapshotSaveCommand) Synopsis() string { return "Save the state of the servers to a file" }

func (c *snapshotSaveCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain operator snapshot save [options] FILE

  Saves the newest state of the servers to FILE, which must not exist yet. The command
  reads the file again and verifies its checksums before it ends with 0. It needs a token
  with the right write, because the file holds the secrets of the nodes.

Options:

  -stale            The server at -address answers, also without a leader. The state may
                    lack the newest writes.
` + connectHelp)
}

// AutocompleteArgs completes the name of a file.
func (c *snapshotSaveCommand) AutocompleteArgs() complete.Predictor {
	return complete.PredictFiles("*")
}

func (c *snapshotSaveCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *snapshotSaveCommand) run(args []string) error {
	var f snapshotSaveFlags
	name, err := oneFile(f.set(), "operator snapshot save", args)
	if err != nil {
		return err
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return saidf("Error saving snapshot: %s exists already, or cannot be read: choose another name", name)
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	found, err := saveAs(name, func(to io.Writer) error { return client.SaveSnapshot(c.ctx, asked, f.stale, to) })
	if err != nil {
		return saidf("Error saving snapshot: %v", err)
	}
	fmt.Fprintf(c.out, "Saved the state of index %d to %s, and verified it\n", found.meta.Index, name)
	return nil
}

// saveAs writes a file and verifies it. After an error there is no file of that name.
func saveAs(name string, save func(io.Writer) error) (found *contents, err error) {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // with mode 0600
	if err != nil {
		return nil, err
	}
	if err := errors.Join(save(file), file.Sync(), file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	if found, err = inspect(file.Name()); err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	return found, os.Rename(file.Name(), name)
}

// snapshotRestoreCommand is "nodedrain operator snapshot restore".
type snapshotRestoreCommand struct{ operatorCommand }

// snapshotRestoreFlags are its flags.
type snapshotRestoreFlags struct {
	connectFlags
	yes bool
}

func (f *snapshotRestoreFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("operator snapshot restore", flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.yes, "yes", false, "")
	return set
}

func (c *snapshotRestoreCommand) Synopsis() string {
	return "Replace the state of the servers with that of a file"
}

func (c *snapshotRestoreCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain operator snapshot restore [options] FILE

  Replaces the state of all servers with the one in FILE. Every change after the file was
  saved is lost. The command shows the content of the file, and asks. The servers verify
  the file before they change anything.

  Drains that ran when the file was saved continue with the deadlines they had then. If
  its deadline has passed, a drain stops the rest of the allocations on its node at once.
  Nodes have the secrets of that time. The servers do not know a node that registered
  later: its client registers it again. They do not know allocations that were placed
  later: their clients stop them.

Options:

  -yes              Do not ask for confirmation.
` + connectHelp)
}

// AutocompleteArgs completes the name of a file.
func (c *snapshotRestoreCommand) AutocompleteArgs() complete.Predictor {
	return complete.PredictFiles("*")
}

func (c *snapshotRestoreCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *snapshotRestoreCommand) run(args []string) error {
	var f snapshotRestoreFlags
	name, err := oneFile(f.set(), "operator snapshot restore", args)
	if err != nil {
		return err
	}
	found, err := inspect(name)
	if err != nil {
		return saidf("Error restoring snapshot: %v", err)
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	if !f.yes {
		found.write(c.out, time.Now())
		const question = "\nReplace the state of all servers with this one? Every later change is lost. [y/N]"
		if err := c.confirmedAs(question, "Cancelling snapshot restore"); err != nil {
			return err
		}
	}
	file, err := os.Open(name)
	if err != nil {
		return saidf("Error restoring snapshot: %v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	index, err := client.RestoreSnapshot(c.ctx, asked, file)
	if err != nil {
		return saidf("Error restoring snapshot: %v", err)
	}
	fmt.Fprintf(c.out, "Restored the state of index %d: the servers have it at index %d\n", found.meta.Index, index)
	return nil
}

// snapshotInspectCommand is "nodedrain operator snapshot inspect".
type snapshotInspectCommand struct{ operatorCommand }

func (*snapshotInspectCommand) flags() *flag.FlagSet {
	return flag.NewFlagSet("operator snapshot inspect", flag.ContinueOnError)
}

func (c *snapshotInspectCommand) Synopsis() string {
	return "Verify a saved state and show its content"
}

func (c *snapshotInspectCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain operator snapshot inspect FILE

  Verifies the checksums of FILE, reads the whole state, and shows its content. It
  contacts no server. The exit code is 1 if the file is damaged, incomplete, of another
  program, or of a cluster version that this build does not understand.
`)
}

// AutocompleteArgs completes the name of a file.
func (c *snapshotInspectCommand) AutocompleteArgs() complete.Predictor {
	return complete.PredictFiles("*")
}

func (c *snapshotInspectCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *snapshotInspectCommand) run(args []string) error {
	name, err := oneFile(c.flags(), "operator snapshot inspect", args)
	if err != nil {
		return err
	}
	found, err := inspect(name)
	if err != nil {
		return saidf("Error inspecting snapshot: %v", err)
	}
	found.write(c.out, time.Now())
	return nil
}

// oneFile parses a command line with one argument, a file.
func oneFile(set *flag.FlagSet, command string, args []string) (string, error) {
	files, err := arguments(set, command, args)
	switch {
	case err != nil:
		return "", err
	case len(files) != 1:
		return "", misused(command, "This command takes one argument: <file>")
	}
	return files[0], nil
}

// contents is what a saved state holds.
type contents struct {
	name  string
	size  int64
	meta  archive.Meta
	state *statestore.Snapshot
}

// inspect verifies a file and reads its state.
func inspect(name string) (*contents, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	found := &contents{name: name, size: info.Size()}
	found.meta, err = archive.Read(file, func(m archive.Meta, state io.Reader) error {
		if err := cluster.Require(m.ClusterVersion); err != nil {
			return err
		}
		store, err := statestore.Restore(state)
		if err == nil {
			found.state = store.Snapshot()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return found, nil
}

// write shows the contents. Drains are shown as of now.
func (c *contents) write(out io.Writer, now time.Time) {
	var f facts
	f.add("File", c.name)
	f.add("Size", fmt.Sprintf("%d bytes", c.size))
	f.add("Saved", c.meta.Time.UTC().Format(time.RFC3339))
	f.add("Saved by", c.meta.Server)
	f.add("Cluster", c.meta.Cluster)
	f.add("Cluster version", fmt.Sprint(c.meta.ClusterVersion))
	f.add("Index", fmt.Sprint(c.meta.Index))
	allocs, ended := 0, 0
	for a := range c.state.Allocs() {
		allocs++
		if a.ClientTerminal() {
			ended++
		}
	}
	f.add("Nodes", fmt.Sprint(count(c.state.Nodes())))
	f.add("Jobs", fmt.Sprint(count(c.state.Jobs())))
	f.add("Allocations", fmt.Sprintf("%d, %d of them ended", allocs, ended))
	f.add("Evaluations", fmt.Sprint(count(c.state.Evals())))
	f.add("Ended drains", fmt.Sprint(count(c.state.Drains())))
	f.add("Running drains", fmt.Sprint(count(c.state.DrainingNodes())))
	f.write(out)
	for n := range c.state.DrainingNodes() {
		fmt.Fprintf(out, "  Node %s (%s): %s\n", singleLine(n.Name), shortID(string(n.ID), false), savedLimit(n.Drain, now))
	}
}

// savedLimit is the limit of a drain that a restore continues.
func savedLimit(d *cluster.Drain, now time.Time) string {
	switch {
	case !d.Strategy.Finite():
		return "drains without a deadline"
	case d.Strategy.Passed(now):
		return "its deadline has passed: a restored drain stops the rest at once"
	}
	return "drains until " + d.Strategy.ForceDeadline.UTC().Format(time.RFC3339)
}

func count[T any](all iter.Seq[T]) (n int) {
	for range all {
		n++
	}
	return n
}
