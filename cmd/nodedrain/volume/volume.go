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

// Help is the help of the parent command.
const Help = `Usage: nodedrain volume <command> [options]

  Registers volumes that exist outside the cluster, shows which allocations use them, and
  detaches and deregisters them.`

// Register is "nodedrain volume register".
func Register() *cli.Command {
	return &cli.Command{
		Short: "Register a volume, or change one",
		Help: `
Usage: nodedrain volume register [options] FILE

  Registers the volume in FILE, or changes it. FILE is JSON with the keys of the API: ID,
  ExternalID, PluginID, RequestedCapabilities and others. "-" is the standard input. The
  volume must exist already. docs/volumes.md has an example.

Options:
`,
		Connects: true,
		Args:     cli.Arguments{Least: 1, Most: 1, Usage: "This command takes one argument: <path>"},
		Run:      func(c *cli.Call) error { return (&registerCommand{c}).run() },
	}
}

type registerCommand struct{ *cli.Call }

func (c *registerCommand) run() error {
	volume, err := c.volumeIn(c.Args[0])
	if err != nil {
		return err
	}
	api := c.API
	written, _, err := api.Volumes().Register(c.Ctx, volume)
	if err != nil {
		return cli.Errorf("Error registering volume: %v", err)
	}
	c.Warn(written.Warnings)
	fmt.Fprintf(c.Out, "Volume %q registered\n", volume.ID)
	return nil
}

// volumeIn reads a volume from a file, or from the input.
func (c *registerCommand) volumeIn(file string) (*wire.Volume, error) {
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

// forceFlags are the flags of the commands that may force a change of a volume.
type forceFlags struct {
	force bool
}

func (f *forceFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.force, "force", false, "")
}

// Deregister is "nodedrain volume deregister".
func Deregister() *cli.Command {
	var f forceFlags
	return &cli.Command{
		Short: "Deregister a volume",
		Help: `
Usage: nodedrain volume deregister [options] VOLUME

  Deletes the servers' record of a volume. The volume itself stays as it is. VOLUME is its
  whole id.

Options:

  -force            Deregister the volume also while allocations claim it. No controller
                    detaches it from their nodes then.
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Least: 1, Most: 1, Usage: "This command takes one argument: <volume>"},
		Run:  func(c *cli.Call) error { return (&deregisterCommand{c}).run(&f) },
	}
}

type deregisterCommand struct{ *cli.Call }

func (c *deregisterCommand) run(f *forceFlags) error {
	api := c.API
	if err := api.Volumes().Deregister(c.Ctx, c.Args[0], f.force); err != nil {
		return cli.Errorf("Error deregistering volume: %v", err)
	}
	fmt.Fprintf(c.Out, "Volume %q deregistered\n", c.Args[0])
	return nil
}

// Detach is "nodedrain volume detach".
func Detach() *cli.Command {
	var f forceFlags
	return &cli.Command{
		Short: "Detach a volume from a node",
		Help: `
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
`,
		Connects: true, Flags: f.set,
		Args: cli.Arguments{Least: 2, Most: 2, Usage: "This command takes two arguments: <volume> <node>"},
		Run:  func(c *cli.Call) error { return (&detachCommand{c}).run(&f) },
	}
}

type detachCommand struct{ *cli.Call }

func (c *detachCommand) run(f *forceFlags) error {
	api := c.API
	node, err := c.claimant(api, c.Args[0], c.Args[1])
	if err != nil {
		return err
	}
	if err := api.Volumes().Detach(c.Ctx, c.Args[0], node, f.force); err != nil {
		return cli.Errorf("Error detaching volume: %v", err)
	}
	said := "asked to unmount it"
	if f.force {
		said = "counted as off the volume"
	}
	fmt.Fprintf(c.Out, "Volume %q: node %q is %s\n", c.Args[0], node, said)
	return nil
}

// claimant returns the node with a claim on the volume that the id, the prefix or the name means. The
// node itself may be gone.
func (c *detachCommand) claimant(api *client.Client, volume, given string) (cluster.NodeID, error) {
	if len(given) < cli.MinPrefix {
		return "", cli.Error("Identifier must contain at least two characters.")
	}
	v, _, err := api.Volumes().Read(c.Ctx, volume, client.Query{})
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
		named, err := c.Matches(api, given)
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
