package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// pluginStatusCommand is "nodedrain plugin status".
type pluginStatusCommand struct{ operatorCommand }

func (c *pluginStatusCommand) Synopsis() string { return "List storage plugins, or show one" }

func (c *pluginStatusCommand) Help() string {
	return statusHelp("plugin status [options] [PLUGIN]", `  Without PLUGIN, lists the storage plugins that nodes report. With PLUGIN, shows the
  plugin and its services on each node. PLUGIN is the plugin's id or a prefix of it.`)
}

func (c *pluginStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *pluginStatusCommand) run(args []string) error {
	return showStatus(&c.operatorCommand, "plugin status", args, func(asked *client.Client, f *statusFlags) *lister[*wire.PluginListStub] {
		return &lister[*wire.PluginListStub]{
			name: "plugin status", noun: "plugin",
			list: func(q client.Query) ([]*wire.PluginListStub, client.Answer, error) {
				return asked.Volumes().Plugins(c.ctx, q)
			},
			id: func(p *wire.PluginListStub) string { return p.ID },
			table: func(plugins []*wire.PluginListStub) *table {
				t := newTable("ID", "Provider", "Controllers Healthy", "Nodes Healthy")
				for _, p := range plugins {
					t.row(p.ID, p.Provider, fmt.Sprintf("%d of %d", p.ControllersHealthy, p.ControllersExpected), fmt.Sprintf("%d of %d", p.NodesHealthy, p.NodesExpected))
				}
				return t
			},
			one: func(p *wire.PluginListStub) error { return c.one(asked, f, p.ID) },
		}
	})
}

func (c *pluginStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	p, _, err := asked.Volumes().Plugin(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying plugin: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, p)
	}
	var about facts
	for _, fact := range [][2]string{
		{"ID", p.ID}, {"Provider", p.Provider}, {"Version", p.Version}, {"Controller Required", fmt.Sprint(p.ControllerRequired)},
	} {
		about.add(fact[0], fact[1])
	}
	about.write(c.out)
	for _, of := range []struct {
		title    string
		services map[string]*wire.CSIInfo
	}{{"Controllers", p.Controllers}, {"Nodes", p.Nodes}} {
		if len(of.services) == 0 {
			continue
		}
		fmt.Fprintln(c.out, "\n"+of.title)
		t := newTable("Node", "Allocation", "Healthy", "Description")
		for _, node := range slices.Sorted(maps.Keys(of.services)) {
			s := of.services[node]
			t.row(shortID(node, f.verbose), shortID(s.AllocID, f.verbose), fmt.Sprint(s.Healthy), s.HealthDescription)
		}
		t.write(c.out)
	}
	return nil
}

// AutocompleteArgs completes the plugin.
func (c *pluginStatusCommand) AutocompleteArgs() complete.Predictor { return c.ids("plugins") }

// AutocompleteFlags completes the flags.
func (c *pluginStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(statusFlags).set("plugin status"))
}
