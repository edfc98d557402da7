package volume

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain volume status".
func Status() *cli.Command {
	return cli.Status("List volumes, or show one volume", "volume status [options] [VOLUME]", `  Without VOLUME, lists the volumes of the namespace. With VOLUME, shows the volume, its
  storage plugin, and the claims of allocations, and what each waits for. VOLUME is the
  volume's id or a prefix of it.`, "volumes", func(call *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.VolumeListStub] {
		c, api := &statusCommand{call}, call.API
		return &cli.Lister[*wire.VolumeListStub]{
			Noun: "volume",
			List: func(q client.Query) ([]*wire.VolumeListStub, client.Answer, error) {
				return api.Volumes().List(c.Ctx, q)
			},
			ID:    func(v *wire.VolumeListStub) string { return v.ID },
			Table: StubTable,
			One:   func(v *wire.VolumeListStub) error { return c.one(api, f, v.ID) },
		}
	})
}

type statusCommand struct{ *cli.Call }

// StubTable lists volumes.
func StubTable(volumes []*wire.VolumeListStub) *cli.Table {
	t := cli.NewTable("ID", "Namespace", "Plugin", "Schedulable", "Access", "Readers", "Writers")
	for _, v := range volumes {
		t.Row(v.ID, v.Namespace, v.PluginID, fmt.Sprint(v.Schedulable), cmp.Or(v.AccessMode, "-"), fmt.Sprint(v.CurrentReaders), fmt.Sprint(v.CurrentWriters))
	}
	return t
}

func (c *statusCommand) one(api *client.Client, f *cli.StatusFlags, id string) error {
	v, _, err := api.Volumes().Read(c.Ctx, id, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying volume: %v", err)
	case c.Raw():
		return c.PrintRaw(v)
	}
	volumeFacts(v).Write(c.Out)
	defer PrintControllerCalls(c.Out, v.ControllerCalls, f.Verbose)
	if len(v.Claims) == 0 {
		fmt.Fprintln(c.Out, "\nNo allocation claims the volume")
		return nil
	}
	fmt.Fprintln(c.Out, "\nClaims")
	t := cli.NewTable("Allocation", "Node", "Mode", "State", "Waits for")
	for _, claim := range v.Claims {
		t.Row(cli.ShortID(claim.AllocID, f.Verbose), cli.ShortID(claim.NodeID, f.Verbose), claim.Mode, claim.StateDescription, cmp.Or(cli.LocalTimes(claim.Waits), "-"))
	}
	t.Write(c.Out)
	return nil
}

func volumeFacts(v *wire.Volume) *cli.Facts {
	var modes []string
	for _, m := range v.RequestedCapabilities {
		modes = append(modes, m.AccessMode+" "+m.AttachmentMode)
	}
	var f cli.Facts
	f.Add("ID", v.ID)
	f.Add("Name", v.Name)
	f.Add("Namespace", v.Namespace)
	f.Add("External ID", v.ExternalID)
	f.Add("Plugin", v.PluginID)
	f.Add("Provider", strings.TrimSpace(v.Provider+" "+v.ProviderVersion))
	f.Add("Schedulable", fmt.Sprint(v.Schedulable))
	f.Add("Nodes Healthy", fmt.Sprintf("%d of %d", v.NodesHealthy, v.NodesExpected))
	if v.ControllersExpected > 0 || v.ControllerRequired {
		f.Add("Controllers Healthy", fmt.Sprintf("%d of %d", v.ControllersHealthy, v.ControllersExpected))
	}
	f.Add("May Be Used As", strings.Join(modes, ", "))
	if v.AccessMode != "" {
		f.Add("Is Used As", v.AccessMode+" "+v.AttachmentMode)
	}
	return &f
}
