package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// volumeStatusCommand is "nodedrain volume status".
type volumeStatusCommand struct{ operatorCommand }

func (c *volumeStatusCommand) Synopsis() string { return "List volumes, or show one volume" }

func (c *volumeStatusCommand) Help() string {
	return statusHelp("volume status [options] [VOLUME]", `  Without VOLUME, lists the volumes of the namespace. With VOLUME, shows the volume, its
  storage plugin, and the claims of allocations, and what each waits for. VOLUME is the
  volume's id or a prefix of it.`)
}

func (c *volumeStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *volumeStatusCommand) run(args []string) error {
	return showStatus(&c.operatorCommand, "volume status", args, func(asked *client.Client, f *statusFlags) *lister[*wire.VolumeListStub] {
		return &lister[*wire.VolumeListStub]{
			name: "volume status", noun: "volume",
			list: func(q client.Query) ([]*wire.VolumeListStub, client.Answer, error) {
				return asked.Volumes().List(c.ctx, q)
			},
			id:    func(v *wire.VolumeListStub) string { return v.ID },
			table: volumeStubTable,
			one:   func(v *wire.VolumeListStub) error { return c.one(asked, f, v.ID) },
		}
	})
}

// volumeStubTable lists volumes.
func volumeStubTable(volumes []*wire.VolumeListStub) *table {
	t := newTable("ID", "Namespace", "Plugin", "Schedulable", "Access", "Readers", "Writers")
	for _, v := range volumes {
		t.row(v.ID, v.Namespace, v.PluginID, fmt.Sprint(v.Schedulable), cmp.Or(v.AccessMode, "-"), fmt.Sprint(v.CurrentReaders), fmt.Sprint(v.CurrentWriters))
	}
	return t
}

func (c *volumeStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	v, _, err := asked.Volumes().Read(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying volume: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, v)
	}
	volumeFacts(v).write(c.out)
	defer printControllerCalls(c.out, v.ControllerCalls, f.verbose)
	if len(v.Claims) == 0 {
		fmt.Fprintln(c.out, "\nNo allocation claims the volume")
		return nil
	}
	fmt.Fprintln(c.out, "\nClaims")
	t := newTable("Allocation", "Node", "Mode", "State", "Waits for")
	for _, claim := range v.Claims {
		t.row(shortID(claim.AllocID, f.verbose), shortID(claim.NodeID, f.verbose), claim.Mode, claim.StateDescription, cmp.Or(localTimes(claim.Waits), "-"))
	}
	t.write(c.out)
	return nil
}

func volumeFacts(v *wire.Volume) *facts {
	var modes []string
	for _, m := range v.RequestedCapabilities {
		modes = append(modes, m.AccessMode+" "+m.AttachmentMode)
	}
	var f facts
	f.add("ID", v.ID)
	f.add("Name", v.Name)
	f.add("Namespace", v.Namespace)
	f.add("External ID", v.ExternalID)
	f.add("Plugin", v.PluginID)
	f.add("Provider", strings.TrimSpace(v.Provider+" "+v.ProviderVersion))
	f.add("Schedulable", fmt.Sprint(v.Schedulable))
	f.add("Nodes Healthy", fmt.Sprintf("%d of %d", v.NodesHealthy, v.NodesExpected))
	if v.ControllersExpected > 0 || v.ControllerRequired {
		f.add("Controllers Healthy", fmt.Sprintf("%d of %d", v.ControllersHealthy, v.ControllersExpected))
	}
	f.add("May Be Used As", strings.Join(modes, ", "))
	if v.AccessMode != "" {
		f.add("Is Used As", v.AccessMode+" "+v.AttachmentMode)
	}
	return &f
}

// AutocompleteArgs completes the volume.
func (c *volumeStatusCommand) AutocompleteArgs() complete.Predictor { return c.ids("volumes") }

// AutocompleteFlags completes the flags.
func (c *volumeStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(statusFlags).set("volume status"))
}
