package plugin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// StatusCommand is "nodedrain plugin status".
type StatusCommand struct{ cli.Base }

func (c *StatusCommand) Synopsis() string { return "List storage plugins, or show one" }

func (c *StatusCommand) Help() string {
	return cli.StatusHelp("plugin status [options] [PLUGIN]", `  Without PLUGIN, lists the storage plugins that nodes report. With PLUGIN, shows the
  plugin and its services on each node. PLUGIN is the plugin's id or a prefix of it.`)
}

func (c *StatusCommand) Run(args []string) int { return c.Exit(c.run(args)) }

func (c *StatusCommand) run(args []string) error {
	return cli.ShowStatus(&c.Base, "plugin status", args, func(asked *client.Client, f *cli.StatusFlags) *cli.Lister[*wire.PluginListStub] {
		return &cli.Lister[*wire.PluginListStub]{
			Name: "plugin status", Noun: "plugin",
			List: func(q client.Query) ([]*wire.PluginListStub, client.Answer, error) {
				return asked.Volumes().Plugins(c.Ctx, q)
			},
			Id: func(p *wire.PluginListStub) string { return p.ID },
			Table: func(plugins []*wire.PluginListStub) *cli.Table {
				t := cli.NewTable("ID", "Provider", "Controllers Healthy", "Nodes Healthy")
				for _, p := range plugins {
					t.Row(p.ID, p.Provider, fmt.Sprintf("%d of %d", p.ControllersHealthy, p.ControllersExpected), fmt.Sprintf("%d of %d", p.NodesHealthy, p.NodesExpected))
				}
				return t
			},
			One: func(p *wire.PluginListStub) error { return c.one(asked, f, p.ID) },
		}
	})
}

func (c *StatusCommand) one(asked *client.Client, f *cli.StatusFlags, id string) error {
	p, _, err := asked.Volumes().Plugin(c.Ctx, id, client.Query{})
	switch {
	case err != nil:
		return cli.Errorf("Error querying plugin: %v", err)
	case f.Raw():
		return cli.PrintRaw(&f.OutputFlags, c.Out, p)
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

// AutocompleteArgs completes the plugin.
func (c *StatusCommand) AutocompleteArgs() complete.Predictor { return c.Ids("plugins") }

// AutocompleteFlags completes the flags.
func (c *StatusCommand) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(cli.StatusFlags).Set("plugin status"))
}
