package main

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
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

const volumeHelp = `Usage: nodedrain volume <command> [options]

  Registers volumes that exist outside the cluster, shows which allocations use them, and
  detaches and deregisters them.`

// volumeRegisterCommand is "nodedrain volume register".
type volumeRegisterCommand struct{ operatorCommand }

func (c *volumeRegisterCommand) Synopsis() string { return "Register a volume, or change one" }

func (c *volumeRegisterCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain volume register [options] FILE

  Registers the volume in FILE, or changes it. FILE is JSON with the keys of the API: ID,
  ExternalID, PluginID, RequestedCapabilities and others. "-" is the standard input. The
  volume must exist already. docs/volumes.md has an example.

Options:
` + connectHelp)
}

func (c *volumeRegisterCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *volumeRegisterCommand) run(args []string) error {
	var f connectFlags
	files, err := arguments(f.flags("volume register"), "volume register", args)
	switch {
	case err != nil:
		return err
	case len(files) != 1:
		return misused("volume register", "This command takes one argument: <path>")
	}
	volume, err := c.volumeIn(files[0])
	if err != nil {
		return err
	}
	asked, err := c.connect(&f)
	if err != nil {
		return err
	}
	defer asked.Close()
	written, _, err := asked.Volumes().Register(c.ctx, volume)
	if err != nil {
		return saidf("Error registering volume: %v", err)
	}
	c.warn(written.Warnings)
	fmt.Fprintf(c.out, "Volume %q registered\n", volume.ID)
	return nil
}

// volumeIn reads a volume from a file, or from the input.
func (c *volumeRegisterCommand) volumeIn(file string) (*wire.Volume, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(c.in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, saidf("Error reading volume: %v", err)
	}
	volume := new(wire.Volume)
	if err := json.Unmarshal(text, volume); err != nil {
		return nil, saidf("Error reading volume: %s is not a JSON object: %v", file, err)
	}
	if volume.ID == "" {
		return nil, saidf("Error reading volume: %s has no ID", file)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(wire.Volume)); err != nil {
		c.warn(fmt.Sprintf("%s: %s, which has no effect", file, strings.TrimPrefix(err.Error(), "json: ")))
	}
	return volume, nil
}

// volumeForceFlags are the flags of the commands that may force a change of a volume.
type volumeForceFlags struct {
	connectFlags
	force bool
}

func (f *volumeForceFlags) set(name string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	f.connectFlags.set(set)
	set.BoolVar(&f.force, "force", false, "")
	return set
}

// volumeDeregisterCommand is "nodedrain volume deregister".
type volumeDeregisterCommand struct{ operatorCommand }

func (c *volumeDeregisterCommand) Synopsis() string { return "Deregister a volume" }

func (c *volumeDeregisterCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain volume deregister [options] VOLUME

  Deletes the servers' record of a volume. The volume itself stays as it is. VOLUME is its
  whole id.

Options:

  -force            Deregister the volume also while allocations claim it. No controller
                    detaches it from their nodes then.
` + connectHelp)
}

func (c *volumeDeregisterCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *volumeDeregisterCommand) run(args []string) error {
	var f volumeForceFlags
	about, err := arguments(f.set("volume deregister"), "volume deregister", args)
	switch {
	case err != nil:
		return err
	case len(about) != 1:
		return misused("volume deregister", "This command takes one argument: <volume>")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	if err := asked.Volumes().Deregister(c.ctx, about[0], f.force); err != nil {
		return saidf("Error deregistering volume: %v", err)
	}
	fmt.Fprintf(c.out, "Volume %q deregistered\n", about[0])
	return nil
}

// volumeDetachCommand is "nodedrain volume detach".
type volumeDetachCommand struct{ operatorCommand }

func (c *volumeDetachCommand) Synopsis() string { return "Detach a volume from a node" }

func (c *volumeDetachCommand) Help() string {
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
` + connectHelp)
}

func (c *volumeDetachCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *volumeDetachCommand) run(args []string) error {
	var f volumeForceFlags
	about, err := arguments(f.set("volume detach"), "volume detach", args)
	switch {
	case err != nil:
		return err
	case len(about) != 2:
		return misused("volume detach", "This command takes two arguments: <volume> <node>")
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	node, err := c.claimant(asked, about[0], about[1])
	if err != nil {
		return err
	}
	if err := asked.Volumes().Detach(c.ctx, about[0], node, f.force); err != nil {
		return saidf("Error detaching volume: %v", err)
	}
	said := "asked to unmount it"
	if f.force {
		said = "counted as off the volume"
	}
	fmt.Fprintf(c.out, "Volume %q: node %q is %s\n", about[0], node, said)
	return nil
}

// claimant returns the node with a claim on the volume that the id, the prefix or the name means. The
// node itself may be gone.
func (c *volumeDetachCommand) claimant(asked *client.Client, volume, given string) (cluster.NodeID, error) {
	if len(given) < minPrefix {
		return "", said("Identifier must contain at least two characters.")
	}
	v, _, err := asked.Volumes().Read(c.ctx, volume, client.Query{})
	if err != nil {
		return "", saidf("Error querying volume: %v", err)
	}
	claiming := func(is func(id string) bool) (nodes []string) {
		for _, claim := range v.Claims {
			if is(claim.NodeID) && !slices.Contains(nodes, claim.NodeID) {
				nodes = append(nodes, claim.NodeID)
			}
		}
		return nodes
	}
	nodes := claiming(func(id string) bool { return hasPrefixFold(id, given) })
	if len(nodes) == 0 {
		named, err := c.matches(asked, given)
		if err != nil {
			return "", saidf("Error querying nodes: %v", err)
		}
		nodes = claiming(func(id string) bool {
			return slices.ContainsFunc(named, func(n *wire.NodeListStub) bool { return n.ID == id })
		})
	}
	switch {
	case len(nodes) == 0:
		return "", saidf("No allocation on a node with prefix or id %q, or with this name, claims volume %q", given, volume)
	case len(nodes) > 1 && !slices.Contains(nodes, given):
		return "", saidf("Prefix matched multiple nodes\n\n%s", strings.Join(nodes, "\n"))
	case len(nodes) > 1:
		return cluster.NodeID(given), nil
	}
	return cluster.NodeID(nodes[0]), nil
}
