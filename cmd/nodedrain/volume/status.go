package volume

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Status is "nodedrain volume status".
func Status() *cli.Command {
	return cli.Status("List volumes, or show one volume", "[VOLUME]", `
  Without VOLUME, lists the volumes of the namespace. With VOLUME, shows the volume, its
  storage plugin, and the claims of allocations, and what each waits for. VOLUME is the
  volume's id or a prefix of it.
`, func(c *cli.Call, f *cli.StatusFlags) *cli.Lister[*wire.VolumeListStub, *wire.Volume] {
		return &cli.Lister[*wire.VolumeListStub, *wire.Volume]{
			Noun:  "volume",
			List:  c.API.Volumes().List,
			ID:    func(v *wire.VolumeListStub) string { return v.ID },
			Table: StubTable,
			Read:  c.API.Volumes().Read,
			Show:  func(v *wire.Volume) error { return show(&c.Base, v, f.Verbose) },
		}
	})
}

// StubTable lists volumes.
func StubTable(volumes []*wire.VolumeListStub) *cli.Table {
	t := cli.NewTable("ID", "Namespace", "Plugin", "Schedulable", "Access", "Readers", "Writers")
	for _, v := range volumes {
		t.Row(v.ID, v.Namespace, v.PluginID, fmt.Sprint(v.Schedulable), cmp.Or(v.AccessMode, "-"), fmt.Sprint(v.CurrentReaders), fmt.Sprint(v.CurrentWriters))
	}
	return t
}

func show(c *cli.Base, v *wire.Volume, verbose bool) error {
	volumeFacts(v).Write(c.Out)
	if len(v.Claims) == 0 {
		fmt.Fprintln(c.Out, "\nNo allocation claims the volume")
	}
	t := cli.NewTable("Allocation", "Node", "Mode", "State", "Waits for")
	for _, claim := range v.Claims {
		t.Row(cli.ShortID(claim.AllocID, verbose), cli.ShortID(claim.NodeID, verbose), claim.Mode, claim.StateDescription, cmp.Or(cli.LocalTimes(claim.Waits), "-"))
	}
	c.SectionIfAny("Claims", t)
	PrintControllerCalls(c, v.ControllerCalls, verbose)
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
	f.AddAny("Is Used As", strings.TrimSpace(v.AccessMode+" "+v.AttachmentMode))
	return &f
}

// HoldTable lists volumes that an allocation which must end, or has ended, or that a drain has left on
// a node. There may be none.
func HoldTable(holds *wire.VolumeHolds, verbose bool) *cli.Table {
	t := cli.NewTable("Volume", "Used By", "Since", "Waits For", "Path")
	if holds == nil || len(holds.Volumes) == 0 {
		return t
	}
	for _, h := range holds.Volumes {
		t.Row(cli.JobName(h.Namespace, h.Volume), cli.ShortID(h.AllocID, verbose), cli.TimeCell(h.Since), cmp.Or(h.Reason, "-"), cmp.Or(h.Path, "-"))
	}
	if more := holds.More; more > 0 {
		t.Row(fmt.Sprintf("and %d more", more), "-", "-", "-", "-")
	}
	return t
}

// PrintControllerCalls prints the calls of controllers that fail, or nothing if there are none.
func PrintControllerCalls(c *cli.Base, calls []wire.ControllerCall, verbose bool) {
	c.SectionIfAny("Failing Controller Calls", controllerTable(calls, verbose, time.Now()))
}

func controllerTable(calls []wire.ControllerCall, verbose bool, now time.Time) *cli.Table {
	t := cli.NewTable("Call", "Volume", "Node", "Failures", "Last Failure", "Next Attempt", "Controller", "Error")
	for _, c := range calls {
		t.Row(c.Call, cli.JobName(c.Namespace, c.Volume), cli.ShortID(c.NodeID, verbose), fmt.Sprint(c.Failures), cli.TimeCell(c.LastAt), nextAttempt(c, now),
			cmp.Or(cli.ShortID(c.ControllerNodeID, verbose), "-"), cmp.Or(c.LastError, "-"))
	}
	return t
}

// nextAttempt returns when a call is repeated.
func nextAttempt(c wire.ControllerCall, now time.Time) string {
	switch {
	case c.InFlight:
		return "in flight"
	case c.NoController:
		return "no healthy controller"
	case c.NextAt.After(now):
		return cli.Clock(c.NextAt)
	}
	return "due"
}
