package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// volumeStatusCommand is "nodedrain volume status".
type volumeStatusCommand struct{ operatorCommand }

func (c *volumeStatusCommand) Synopsis() string { return "List volumes, or show one volume" }

func (c *volumeStatusCommand) Help() string {
	return statusHelp("volume status [options] [VOLUME]", `  Without VOLUME, lists the volumes of the namespace. With VOLUME, shows the volume, its
  storage plugin, and the claims of allocations with what they wait for. VOLUME is the
  volume's id or a prefix of it.`)
}

func (c *volumeStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *volumeStatusCommand) run(args []string) error {
	var f statusFlags
	about, err := arguments(f.set("volume status"), "volume status", args)
	if err != nil {
		return err
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	l := &lister[*wire.VolumeListStub]{
		name: "volume status", noun: "volume",
		list: func(q client.Query) ([]*wire.VolumeListStub, client.Answer, error) {
			return asked.Volumes().List(c.ctx, q)
		},
		id: func(v *wire.VolumeListStub) string { return v.ID },
		table: func(volumes []*wire.VolumeListStub) *table {
			t := newTable("ID", "Namespace", "Plugin", "Schedulable", "Access", "Readers", "Writers")
			for _, v := range volumes {
				t.row(v.ID, v.Namespace, v.PluginID, fmt.Sprint(v.Schedulable), v.AccessMode, fmt.Sprint(v.CurrentReaders), fmt.Sprint(v.CurrentWriters))
			}
			return t
		},
		one: func(v *wire.VolumeListStub) error { return c.one(asked, &f, v.ID) },
	}
	return l.show(c.out, &f, about)
}

func (c *volumeStatusCommand) one(asked *client.Client, f *statusFlags, id string) error {
	v, _, err := asked.Volumes().Read(c.ctx, id, client.Query{})
	switch {
	case err != nil:
		return saidf("Error querying volume: %v", err)
	case f.raw():
		return printRaw(&f.outputFlags, c.out, v)
	}
	var about facts
	for _, fact := range [][2]string{
		{"ID", v.ID}, {"Name", v.Name}, {"Namespace", v.Namespace}, {"External ID", v.ExternalID},
		{"Plugin", v.PluginID}, {"Provider", v.Provider}, {"Version", v.ProviderVersion},
		{"Schedulable", fmt.Sprint(v.Schedulable)},
		{"Nodes healthy", fmt.Sprintf("%d of %d", v.NodesHealthy, v.NodesExpected)},
		{"Controllers healthy", fmt.Sprintf("%d of %d", v.ControllersHealthy, v.ControllersExpected)},
		{"Access mode", v.AccessMode}, {"Attachment mode", v.AttachmentMode},
	} {
		about.add(fact[0], fact[1])
	}
	about.write(c.out)
	if len(v.Claims) == 0 {
		fmt.Fprintln(c.out, "\nNo allocation claims the volume")
		return nil
	}
	fmt.Fprintln(c.out, "\nClaims")
	t := newTable("Allocation", "Node", "Mode", "State", "Waits for")
	for _, claim := range v.Claims {
		t.row(shortID(claim.AllocID, f.verbose), shortID(claim.NodeID, f.verbose), claim.Mode, claim.StateDescription, claim.Waits)
	}
	t.write(c.out)
	return nil
}

// pluginStatusCommand is "nodedrain plugin status".
type pluginStatusCommand struct{ operatorCommand }

func (c *pluginStatusCommand) Synopsis() string { return "List storage plugins, or show one" }

func (c *pluginStatusCommand) Help() string {
	return statusHelp("plugin status [options] [PLUGIN]", `  Without PLUGIN, lists the storage plugins that nodes report. With PLUGIN, shows the
  plugin and its services on each node. PLUGIN is the plugin's id or a prefix of it.`)
}

func (c *pluginStatusCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *pluginStatusCommand) run(args []string) error {
	var f statusFlags
	about, err := arguments(f.set("plugin status"), "plugin status", args)
	if err != nil {
		return err
	}
	asked, err := c.connect(&f.connectFlags)
	if err != nil {
		return err
	}
	defer asked.Close()
	l := &lister[*wire.PluginListStub]{
		name: "plugin status", noun: "plugin",
		list: func(q client.Query) ([]*wire.PluginListStub, client.Answer, error) {
			return asked.Volumes().Plugins(c.ctx, q)
		},
		id: func(p *wire.PluginListStub) string { return p.ID },
		table: func(plugins []*wire.PluginListStub) *table {
			t := newTable("ID", "Provider", "Controllers healthy", "Nodes healthy")
			for _, p := range plugins {
				t.row(p.ID, p.Provider, fmt.Sprintf("%d of %d", p.ControllersHealthy, p.ControllersExpected), fmt.Sprintf("%d of %d", p.NodesHealthy, p.NodesExpected))
			}
			return t
		},
		one: func(p *wire.PluginListStub) error { return c.one(asked, &f, p.ID) },
	}
	return l.show(c.out, &f, about)
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
		{"ID", p.ID}, {"Provider", p.Provider}, {"Version", p.Version}, {"Controller required", fmt.Sprint(p.ControllerRequired)},
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
