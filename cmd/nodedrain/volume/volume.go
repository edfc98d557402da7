package volume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Help is the help of the parent command.
const Help = `
  Registers volumes that exist outside the cluster, shows which allocations use them, and
  detaches and deregisters them.`

// Register is "nodedrain volume register".
func Register() *cli.Command {
	return &cli.Command{
		Short: "Register a volume, or change one",
		Description: `
  Registers the volume in FILE, or changes it. FILE is JSON with the keys of the API: ID,
  ExternalID, PluginID, RequestedCapabilities and others. "-" is the standard input. The
  volume must exist already. docs/volumes.md has an example.
`,
		Args: "FILE", Connects: true, Run: register,
	}
}

func register(c *cli.Call) error {
	file := c.Args[0]
	text, err := c.ReadFile(file)
	if err != nil {
		return cli.Errorf("Error reading volume: %v", err)
	}
	volume := new(wire.Volume)
	if err := jsonbody.Decode(text, volume); err != nil { // as the servers, which name the place
		return cli.Errorf("Error reading volume: %s: %v", file, err)
	}
	if volume.ID == "" {
		return cli.Errorf("Error reading volume: %s has no ID", file)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(wire.Volume)); err != nil {
		c.Warn(fmt.Sprintf("%s: %s, which has no effect", file, strings.TrimPrefix(err.Error(), "json: ")))
	}
	written, _, err := c.API.Volumes().Register(c.Ctx, volume)
	if err != nil {
		return cli.Errorf("Error registering volume: %v", err)
	}
	c.Warn(written.Warnings)
	fmt.Fprintf(c.Out, "Volume %q registered\n", volume.ID)
	return nil
}

// Deregister is "nodedrain volume deregister".
func Deregister() *cli.Command {
	var force bool
	return &cli.Command{
		Short: "Deregister a volume",
		Description: `
  Deletes the servers' record of a volume. The volume itself stays as it is. VOLUME is its
  whole id.
`,
		Args: "VOLUME", Connects: true,
		Options: cli.Options{
			cli.Flag(&force, "force", "Deregister the volume also while allocations claim it. No controller detaches it from their nodes then."),
		},
		Run: func(c *cli.Call) error {
			if err := c.API.Volumes().Deregister(c.Ctx, c.Args[0], force); err != nil {
				return cli.Errorf("Error deregistering volume: %v", err)
			}
			fmt.Fprintf(c.Out, "Volume %q deregistered\n", c.Args[0])
			return nil
		},
	}
}

// Detach is "nodedrain volume detach".
func Detach() *cli.Command {
	var force bool
	return &cli.Command{
		Short: "Detach a volume from a node",
		Description: `
  Asks a node to unmount a volume from allocations that have ended. VOLUME is its whole
  id, NODE the id of a node with a claim on it, a prefix of that id, or the node's name.
`,
		Args: "VOLUME NODE", Connects: true,
		Options: cli.Options{
			cli.Flag(&force, "force", "Continue as if the node had unmounted the volume, also while allocations run. They are stopped and replaced, "+
				"and the node unmounts the volume, at the latest when it returns. A second time: as if the controller had detached it. Another node "+
				"may get the volume at once. If this node still writes to it, the data is destroyed: use it only if you are sure that the node is off."),
		},
		Run: func(c *cli.Call) error {
			node, err := claimant(c, c.Args[0], c.Args[1])
			if err != nil {
				return err
			}
			if err := c.API.Volumes().Detach(c.Ctx, c.Args[0], node, force); err != nil {
				return cli.Errorf("Error detaching volume: %v", err)
			}
			state := "asked to unmount it"
			if force {
				state = "counted as off the volume"
			}
			fmt.Fprintf(c.Out, "Volume %q: node %q is %s\n", c.Args[0], node, state)
			return nil
		},
	}
}

// claimant returns the node with a claim on the volume that has this id, prefix or name. The
// node itself may be gone.
func claimant(c *cli.Call, volume, idOrName string) (cluster.NodeID, error) {
	if len(idOrName) < cli.MinPrefix {
		return "", cli.Error("Identifier must contain at least two characters.")
	}
	v, _, err := c.API.Volumes().Read(c.Ctx, volume, client.Query{})
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
	nodes := claiming(func(id string) bool { return cli.HasPrefixFold(id, idOrName) })
	if len(nodes) == 0 {
		named, err := c.Matches(idOrName)
		if err != nil {
			return "", cli.Errorf("Error querying nodes: %v", err)
		}
		nodes = claiming(func(id string) bool {
			return slices.ContainsFunc(named, func(n *wire.NodeListStub) bool { return n.ID == id })
		})
	}
	switch {
	case len(nodes) == 0:
		return "", cli.Errorf("No allocation on a node with prefix or id %q, or with this name, claims volume %q", idOrName, volume)
	case len(nodes) > 1 && !slices.Contains(nodes, idOrName):
		return "", cli.Errorf("Prefix matched multiple nodes\n\n%s", strings.Join(nodes, "\n"))
	case len(nodes) > 1:
		return cluster.NodeID(idOrName), nil
	}
	return cluster.NodeID(nodes[0]), nil
}
