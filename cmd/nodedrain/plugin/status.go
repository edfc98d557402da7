package plugin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain plugin status".
func Status() *cli.Command {
	return cli.Status("List storage plugins, or show one", "[PLUGIN]", `
  Without PLUGIN, lists the storage plugins that nodes report. With PLUGIN, shows the
  plugin and its services on each node. PLUGIN is the plugin's id or a prefix of it.
`, func(c *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.PluginListStub, *wire.Plugin] {
		return &cli.Lister[*wire.PluginListStub, *wire.Plugin]{
			Noun: "plugin",
			List: c.API.Volumes().Plugins,
			ID:   func(p *wire.PluginListStub) string { return p.ID },
			Table: func(plugins []*wire.PluginListStub) *cli.Table {
				t := cli.NewTable("ID", "Provider", "Controllers Healthy", "Nodes Healthy")
				for _, p := range plugins {
					t.Row(p.ID, p.Provider, fmt.Sprintf("%d of %d", p.ControllersHealthy, p.ControllersExpected), fmt.Sprintf("%d of %d", p.NodesHealthy, p.NodesExpected))
				}
				return t
			},
			Read: c.API.Volumes().Plugin,
			Show: func(p *wire.Plugin) error {
				var facts cli.Facts
				facts.Add("ID", p.ID)
				facts.Add("Provider", p.Provider)
				facts.Add("Version", p.Version)
				facts.Add("Controller Required", fmt.Sprint(p.ControllerRequired))
				facts.Write(c.Out)
				c.SectionIfAny("Controllers", serviceTable(p.Controllers, f.Verbose))
				c.SectionIfAny("Nodes", serviceTable(p.Nodes, f.Verbose))
				return nil
			},
		}
	})
}

// serviceTable lists the services of a plugin by node.
func serviceTable(services map[string]*wire.CSIInfo, verbose bool) *cli.Table {
	t := cli.NewTable("Node", "Allocation", "Healthy", "Description")
	for _, node := range slices.Sorted(maps.Keys(services)) {
		s := services[node]
		t.Row(cli.ShortID(node, verbose), cli.ShortID(s.AllocID, verbose), fmt.Sprint(s.Healthy), s.HealthDescription)
	}
	return t
}
