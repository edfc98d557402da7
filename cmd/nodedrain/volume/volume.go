package volume

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

const Help = `Usage: nodedrain volume <command> [options]

  Registers volumes that exist outside the cluster, shows which allocations use them, and
  detaches and deregisters them.`

// RegisterCommand is "nodedrain volume register".
type RegisterCommand struct{ cli.Base }

func (c *RegisterCommand) Synopsis() string { return "Register a volume, or change one" }

func (c *RegisterCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain volume register [options] FILE

  Registers the volume in FILE, or changes it. FILE is JSON with the keys of the API: ID,
  ExternalID, PluginID, RequestedCapabilities and others. "-" is the standard input. The
  volume must exist already. docs/volumes.md has an example.

Options:
` + cli.ConnectHelp)
}

func (c *RegisterCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *RegisterCommand) run(args []string) error {
	var f cli.ConnectFlags
	files, err := cli.ParseArguments(f.Flags("volume register"), "volume register", args)
	switch {
	case err != nil:
		return err
	case len(files) != 1:
		return cli.UsageError("volume register", "This command takes one argument: <path>")
	}
	volume, err := c.volumeIn(files[0])
	if err != nil {
		return err
	}
	asked, err := c.Connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	written, _, err := asked.Volumes().Register(c.Ctx, volume)
	if err != nil {
		return cli.Errorf("Error registering volume: %v", err)
	}
	c.Warn(written.Warnings)
	fmt.Fprintf(c.Out, "Volume %q registered\n", volume.ID)
	return nil
}

// volumeIn reads a volume from a file, or from the input.
func (c *RegisterCommand) volumeIn(file string) (*wire.Volume, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(c.In)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, cli.Errorf("Error reading volume: %v", err)
	}
	volume := new(wire.Volume)
	if err := json.Unmarshal(text, volume); err != nil {
		return nil, cli.Errorf("Error reading volume: %s is not a JSON object: %v", file, err)
	}
	if volume.ID == "" {
		return nil, cli.Errorf("Error reading volume: %s has no ID", file)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(wire.Volume)); err != nil {
		c.Warn(fmt.Sprintf("%s: %s, which has no effect", file, strings.TrimPrefix(err.Error(), "json: ")))
	}
	return volume, nil
}

// ForceFlags are the flags of the commands that may force a change of a volume.
type ForceFlags struct {
	cli.ConnectFlags
	force bool
}

func (f *ForceFlags) Set(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	f.ConnectFlags.Set(set)
	set.BoolVar(&f.force, "force", false, "")
	return set
}

// DeregisterCommand is "nodedrain volume deregister".
type DeregisterCommand struct{ cli.Base }

func (c *DeregisterCommand) Synopsis() string { return "Deregister a volume" }

func (c *DeregisterCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain volume deregister [options] VOLUME

  Deletes the servers' record of a volume. The volume itself stays as it is. VOLUME is its
  whole id.

Options:

  -force            Deregister the volume also while allocations claim it. No controller
                    detaches it from their nodes then.
` + cli.ConnectHelp)
}

func (c *DeregisterCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *DeregisterCommand) run(args []string) error {
	var f ForceFlags
	about, err := cli.ParseArguments(f.Set("volume deregister"), "volume deregister", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return cli.UsageError("volume deregister", "This command takes one argument: <volume>")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Volumes().Deregister(c.Ctx, about[0], f.force); err != nil {
		return cli.Errorf("Error deregistering volume: %v", err)
	}
	fmt.Fprintf(c.Out, "Volume %q deregistered\n", about[0])
	return nil
}

// DetachCommand is "nodedrain volume detach".
type DetachCommand struct{ cli.Base }

func (c *DetachCommand) Synopsis() string { return "Detach a volume from a node" }

func (c *DetachCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain volume detach [options] VOLUME NODE

  Asks a node to unmount a volume from allocations that have ended. VOLUME is its whole
  id, NODE the id of a node with a claim on it, a prefix of that id, or the node's name.

Options:

  -force            Continue as if the node had unmounted the volume, also while
                    allocations run. They are stopped and replaced, and the node unmounts
                    the volume, at the latest when it returns. A second time: as if the
                    controller had detached it. Another node may get the volume at once.
                    If this node still writes to it, the data is destroyed: use it only if
                    you are sure that the node is off.
` + cli.ConnectHelp)
}

func (c *DetachCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *DetachCommand) run(args []string) error {
	var f ForceFlags
	about, err := cli.ParseArguments(f.Set("volume detach"), "volume detach", args)
	switch {
	case err != nil:
		return err
	case len(about) != 2:
		return cli.UsageError("volume detach", "This command takes two arguments: <volume> <node>")
	}
	asked, err := c.Connect(&f.ConnectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	node, err := c.claimant(asked, about[0], about[1])
	if err != nil {
		return err
	}
	if err := asked.Volumes().Detach(c.Ctx, about[0], node, f.force); err != nil {
		return cli.Errorf("Error detaching volume: %v", err)
	}
	said := "asked to unmount it"
	if f.force {
		said = "counted as off the volume"
	}
	fmt.Fprintf(c.Out, "Volume %q: node %q is %s\n", about[0], node, said)
	return nil
}

// claimant returns the node with a claim on the volume that the id, the prefix or the name means. The
// node itself may be gone.
func (c *DetachCommand) claimant(asked *client.Client, volume, given string) (cluster.NodeID, error) {
	if len(given) < cli.MinPrefix {
		return "", cli.Error("Identifier must contain at least two characters.")
	}
	v, _, err := asked.Volumes().Read(c.Ctx, volume, client.Query{})
	if err != nil {
		return "", cli.Errorf("Error querying volume: %v", err)
	}
	claiming := func(is func(id string) bool) (nodes []string) {
		for _, claim := range v.Claims {
			if is(claim.NodeID) && !slices.Contains(nodes, claim.NodeID) {
				nodes = append(nodes, claim.NodeID)
			}
		}
		return nodes
	}
	nodes := claiming(func(id string) bool { return cli.HasPrefixFold(id, given) })
	if len(nodes) == 0 {
		named, err := c.Matches(asked, given)
		if err != nil {
			return "", cli.Errorf("Error querying nodes: %v", err)
		}
		nodes = claiming(func(id string) bool {
			return slices.ContainsFunc(named, func(n *wire.NodeListStub) bool { return n.ID == id })
		})
	}
	switch {
	case len(nodes) == 0:
		return "", cli.Errorf("No allocation on a node with prefix or id %q, or with this name, claims volume %q", given, volume)
	case len(nodes) > 1 && !slices.Contains(nodes, given):
		return "", cli.Errorf("Prefix matched multiple nodes\n\n%s", strings.Join(nodes, "\n"))
	case len(nodes) > 1:
		return cluster.NodeID(given), nil
	}
	return cluster.NodeID(nodes[0]), nil
}
