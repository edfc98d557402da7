package plugin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain plugin status".
func Status() *cli.Command {
	return cli.Status("List storage plugins, or show one", "plugin status [options] [PLUGIN]", `  Without PLUGIN, lists the storage plugins that nodes report. With PLUGIN, shows the
  plugin and its services on each node. PLUGIN is the plugin's id or a prefix of it.`, "plugins", func(call *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.PluginListStub] {
		c, api := &statusCommand{call}, call.API
		return &cli.Lister[*wire.PluginListStub]{
			Noun: "plugin",
			List: func(q client.Query) ([]*wire.PluginListStub, client.Answer, error) {
				return api.Volumes().Plugins(c.Ctx, q)
			},
			ID: func(p *wire.PluginListStub) string { return p.ID },
			Table: func(plugins []*wire.PluginListStub) *cli.Table {
				t := cli.NewTable("ID", "Provider", "Controllers Healthy", "Nodes Healthy")
				for _, p := range plugins {
					t.Row(p.ID, p.Provider, fmt.Sprintf("%d of %d", p.ControllersHealthy, p.ControllersExpected), fmt.Sprintf("%d of %d", p.NodesHealthy, p.NodesExpected))
				}
				return t
			},
			One: func(p *wire.PluginListStub) error { return c.one(api, f, p.ID) },
		}
	})
}

type statusCommand struct{ *cli.Call }

func (c *statusCommand) one(api *client.Client, f *cli.StatusFlags, id string) error {
	p, _, err := api.Volumes().Plugin(c.Ctx, id, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying plugin: %v", err)
	case c.Raw():
		return c.PrintRaw(p)
	}
	var about cli.Facts
	for _, fact := range [][2]string{
		{"ID", p.ID}, {"Provider", p.Provider}, {"Version", p.Version}, {"Controller Required", fmt.Sprint(p.ControllerRequired)},
	} {
		about.Add(fact[0], fact[1])
	}
	about.Write(c.Out)
	for _, of := range []struct {
		title    string
		services map[string]*wire.CSIInfo
	}{{"Controllers", p.Controllers}, {"Nodes", p.Nodes}} {
		if len(of.services) == 0 {
			continue
		}
		fmt.Fprintln(c.Out, "\n"+of.title)
		t := cli.NewTable("Node", "Allocation", "Healthy", "Description")
		for _, node := range slices.Sorted(maps.Keys(of.services)) {
			s := of.services[node]
			t.Row(cli.ShortID(node, f.Verbose), cli.ShortID(s.AllocID, f.Verbose), fmt.Sprint(s.Healthy), s.HealthDescription)
		}
		t.Write(c.Out)
	}
	return nil
}
