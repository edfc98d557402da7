package operator

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/archive"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Help is the help of the parent command.
const Help = `
  Commands for the operators of the servers.`

// SnapshotHelp is the help of "nodedrain operator snapshot".
const SnapshotHelp = `
  Saves the state of the servers to a file, restores it, and shows the content of a file.
  The file holds the secrets of the nodes: protect it like the data directory of a server.`

// SnapshotSave is "nodedrain operator snapshot save".
func SnapshotSave() *cli.Command {
	var stale bool
	return &cli.Command{
		Short: "Save the state of the servers to a file",
		Description: `
  Saves the newest state of the servers to FILE, which must not exist yet. The command
  reads the file again and verifies its checksums before it ends with 0. It needs a token
  with the right write, because the file holds the secrets of the nodes.
`,
		Args: "FILE", Connects: true,
		Options: cli.Options{
			cli.Flag(&stale, "stale", "The server at -address answers, also without a leader. The state may lack the newest writes."),
		},
		Run: func(c *cli.Call) error {
			name := c.Args[0]
			if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				return cli.Errorf("Error saving snapshot: %s exists already, or cannot be read: choose another name", name)
			}
			found, err := saveAs(name, func(to io.Writer) error { return client.SaveSnapshot(c.Ctx, c.API, stale, to) })
			if err != nil {
				return cli.Errorf("Error saving snapshot: %v", err)
			}
			fmt.Fprintf(c.Out, "Saved the state of index %d to %s, and verified it\n", found.meta.Index, name)
			return nil
		},
	}
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

// SnapshotRestore is "nodedrain operator snapshot restore".
func SnapshotRestore() *cli.Command {
	var f restoreFlags
	return &cli.Command{
		Short: "Replace the state of the servers with that of a file",
		Description: `
  Replaces the state of all servers with the one in FILE. Every change after the file was
  saved is lost. The command shows the content of the file, and requires a confirmation.
  The servers verify the file before they change anything. If the file is of another
  cluster, the command shows the ids of both, and -yes needs -other-cluster too. A cluster
  that was created again has another id.

  Drains that ran when the file was saved continue with the deadlines they had then, and
  paused drains stay paused. If its deadline has passed, a drain stops the rest of the
  allocations on its node at once. Nodes have the secrets of that time. The servers do not
  have a node that registered later: its client registers it again.

  Allocations that were placed after the file was saved still run after the restore. Each
  client reports and stops them at its next contact. Until a client that is dead, frozen
  or cut off is back, a drain of its node is complete beside them. So before you trust
  "complete": wait until the nodes without contact are down, look at their machines, and
  check that "node status NODE" of the others shows no unlisted allocations.
`,
		Args: "FILE", Connects: true,
		Options: cli.Options{
			cli.Flag(&f.yes, "yes", "Skip the confirmation."),
			cli.Flag(&f.otherCluster, "other-cluster", "With -yes: also restore the file of another cluster."),
		},
		Run: func(c *cli.Call) error { return f.restore(c, c.Args[0]) },
	}
}

// restoreFlags are its flags.
type restoreFlags struct{ yes, otherCluster bool }

func (f *restoreFlags) restore(c *cli.Call, name string) error {
	found, err := inspect(name)
	if err != nil {
		return cli.Errorf("Error restoring snapshot: %v", err)
	}
	if err := f.confirm(c, found); err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return cli.Errorf("Error restoring snapshot: %v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	index, err := client.RestoreSnapshot(c.Ctx, c.API, file)
	if err != nil {
		return cli.Errorf("Error restoring snapshot: %v", err)
	}
	fmt.Fprintf(c.Out, "Restored the state of index %d: the servers have it at index %d\n", found.meta.Index, index)
	return nil
}

// confirm shows what a file would restore, and requires an answer or flags.
func (f *restoreFlags) confirm(c *cli.Call, found *contents) error {
	servers, err := c.API.Servers().RaftConfiguration(c.Ctx)
	if err != nil {
		return cli.Errorf("Error querying servers: %v", err)
	}
	clusters := otherCluster(found.meta.Cluster, servers.Cluster)
	switch {
	case f.yes && clusters != "" && !f.otherCluster:
		return cli.Errorf("Error restoring snapshot: %s: %s. Nothing was changed: -yes restores it only with -other-cluster", found.name, clusters)
	case f.yes:
		fmt.Fprintln(c.Out, restoreWarning(clusters != ""))
		return nil
	}
	found.write(c.Out, time.Now())
	fmt.Fprintln(c.Out, "\n"+restoreWarning(clusters != ""))
	question := "Replace the state of all servers with this one? Every later change is lost. [y/N]"
	if clusters != "" {
		question = "Warning: " + clusters + ".\n" + question
	}
	return c.Confirm("\n"+question, "Cancelling snapshot restore")
}

// restoreWarning is what may run on the nodes after a restore, and what the operator must check.
func restoreWarning(other bool) string {
	text := `Allocations that were placed after the file was saved still run after the restore, and the
servers do not list them. Each client reports and stops them at its next contact. A client
that is dead, frozen or cut off does not: a drain of its node is "complete" beside them.
Before you trust "complete":
  1. Wait until the nodes whose clients do not answer are down. Look at their machines.
  2. Check that "nodedrain node status NODE" of the others shows no unlisted allocations.`
	if other {
		text += `
Clients that run tasks of another cluster keep these tasks and ignore the restored state until
the tasks have ended. A drain of such a node stops none of them: see docs/client.md.`
	}
	return text
}

// otherCluster names the clusters of a file and of the servers if they differ, otherwise it is empty. The id of
// either may be unknown.
func otherCluster(file, servers string) string {
	if file == "" || servers == "" || file == servers {
		return ""
	}
	return fmt.Sprintf("the file is of cluster %s, and the servers are of cluster %s", cli.SingleLine(file), cli.SingleLine(servers))
}

// SnapshotInspect is "nodedrain operator snapshot inspect".
func SnapshotInspect() *cli.Command {
	return &cli.Command{
		Short: "Verify a saved state and show its content",
		Description: `
  Verifies the checksums of FILE, reads the whole state, and shows its content. It
  contacts no server. The exit code is 1 if the file is damaged, incomplete, of another
  program, or of a cluster version that this build does not understand.
`,
		Args: "FILE",
		Run: func(c *cli.Call) error {
			found, err := inspect(c.Args[0])
			if err != nil {
				return cli.Errorf("Error inspecting snapshot: %v", err)
			}
			found.write(c.Out, time.Now())
			return nil
		},
	}
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
	var f cli.Facts
	f.Add("File", c.name)
	f.Add("Size", fmt.Sprintf("%d bytes", c.size))
	f.Add("Checksums", "verified")
	f.Add("Saved", c.meta.Time.UTC().Format(time.RFC3339))
	f.Add("Saved by", c.meta.Server)
	f.Add("Cluster", c.meta.Cluster)
	f.Add("Cluster version", fmt.Sprint(c.meta.ClusterVersion))
	f.Add("Index", fmt.Sprint(c.meta.Index))
	allocs, ended := 0, 0
	for a := range c.state.Allocs() {
		allocs++
		if a.ClientTerminal() {
			ended++
		}
	}
	f.Add("Nodes", fmt.Sprint(count(c.state.Nodes())))
	f.Add("Jobs", fmt.Sprint(count(c.state.Jobs())))
	f.Add("Allocations", fmt.Sprintf("%d, %d of them ended", allocs, ended))
	f.Add("Evaluations", fmt.Sprint(count(c.state.Evals())))
	f.Add("Volumes", fmt.Sprint(count(c.state.Volumes())))
	f.Add("Claims", fmt.Sprint(count(c.state.WorkView().Claims())))
	f.Add("Ended drains", fmt.Sprint(count(c.state.Drains())))
	f.Add("Running drains", fmt.Sprint(count(c.state.DrainView().DrainingNodes())))
	if all := c.state.DrainView().DrainPause(); all != nil {
		f.Add("All drains", "paused since "+all.At.UTC().Format(time.RFC3339))
	}
	f.Write(out)
	for n := range c.state.DrainView().DrainingNodes() {
		fmt.Fprintf(out, "  Node %s (%s): %s\n", cli.SingleLine(n.Name), cli.ShortID(string(n.ID), false), savedLimit(n.Drain, c.state.DrainView().DrainPause(), now))
	}
}

// savedLimit is the limit of a drain that a restore continues. all is the pause of all drains, or nil.
func savedLimit(d *cluster.Drain, all *cluster.DrainPause, now time.Time) string {
	since := d.PausedSince(all)
	switch {
	case !since.IsZero():
		return "paused since " + since.UTC().Format(time.RFC3339) + ": a restored drain stays paused"
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
