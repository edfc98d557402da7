package client_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// loseRecord kills the client, and loses the record of an allocation. The next client has not read the servers.
func loseRecord(n *node, id cluster.AllocID, disk client.DiskLeft) {
	n.disk[id] = client.OrphanRecord(id, []string{"web"}, n.bootID)
	if n.disk[id].Disk = disk; disk == "" {
		delete(n.data.folders, id)
	}
	n.crash()
}

// The record of an allocation is lost while its task runs. Bug: the client removed the data that the group keeps, and
// the task started again with an empty disk.
func TestDiskLeft_startsAgain(t *testing.T) {
	const again = "The client has no record of the earlier start of the task, which starts again with "
	for name, c := range map[string]struct {
		disk             client.DiskLeft
		change           func(*cluster.EphemeralDisk)
		content, message string
	}{
		"migrate":       {client.DiskFound, func(*cluster.EphemeralDisk) {}, "a a", again + "what is left of its disk"},
		"sticky":        {client.DiskFound, func(d *cluster.EphemeralDisk) { d.Migrate = false }, "a a", again + "what is left of its disk"},
		"not kept":      {client.DiskFound, func(d *cluster.EphemeralDisk) { d.Migrate, d.Sticky = false, false }, "a", again + "an empty disk"},
		"it is lost":    {"", func(*cluster.EphemeralDisk) {}, "a", again + "an empty disk: its data is lost"},
		"not kept, too": {"", func(d *cluster.EphemeralDisk) { d.Migrate, d.Sticky = false, false }, "a", again + "an empty disk"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newDisks(t)
			n.scripts["web"] = script{stopTakes: time.Second}
			a := disk("a", "")
			c.change(&a.Job.TaskGroups[0].EphemeralDisk)
			n.place(a)
			reaches(n, "a", cluster.ClientRunning, time.Second)
			loseRecord(n, "a", c.disk)
			n.run(time.Minute)
			must.SliceEmpty(t, n.live("web"), must.Sprint("its processes end"))
			must.EqOp(t, c.disk == client.DiskFound, n.data.content("a") == "a", must.Sprint("the data stays until the servers have answered"))
			n.answer()
			n.run(time.Minute)
			must.SliceLen(t, 1, n.live("web"))
			must.EqOp(t, c.content, n.data.content("a"))
			must.StrContains(t, n.messages("a", "web"), c.message)

			// The next stop keeps the data like any other, also after a crash.
			restarts(n, time.Minute)
			ends(n, "a", time.Minute)
			if a.Job.TaskGroups[0].EphemeralDisk.Migrate {
				must.EqOp(t, cluster.DataKept, n.servers["a"].DataOut.StateOf())
				must.EqOp(t, c.content, n.data.content("a"))
			}
		})
	}
}

// The stop of such an allocation arrives before it has started again. Bug: the client removed the data and reported
// none, so the drain was complete, and the replacement's reason was that no allocation had data.
func TestDiskLeft_stopped(t *testing.T) {
	for name, found := range map[string]client.DiskLeft{"found": client.DiskFound, "lost": ""} {
		for when, crashes := range map[string]bool{"": false, ", and the client dies again": true} {
			t.Run(name+when, func(t *testing.T) {
				n := newDisks(t)
				n.scripts["web"] = script{stopTakes: time.Second}
				n.place(disk("a", ""))
				reaches(n, "a", cluster.ClientRunning, time.Second)
				loseRecord(n, "a", found)
				n.stop("a")
				if crashes {
					n.run(5 * time.Millisecond)
					restarts(n, 0)
				}
				n.run(time.Minute)
				must.EqOp(t, cluster.ClientComplete, n.status("a"))
				must.SliceEmpty(t, n.live(""))
				must.EqOp(t, 1, n.ids, must.Sprint("it does not start again"))
				out := n.servers["a"].DataOut
				if found == client.DiskFound {
					must.EqOp(t, cluster.DataKept, out.StateOf())
					must.EqOp(t, "a", n.data.content("a"))
				} else {
					must.EqOp(t, cluster.DataGivenUp, out.StateOf())
					must.EqOp(t, client.DataLost, out.Why)
				}

				// The replacement on this node has the data, or the reason.
				n.place(disk("r", "a"))
				reaches(n, "r", cluster.ClientRunning, time.Minute)
				if found == client.DiskFound {
					dataIn(n, "r", cluster.DataCopied)
					must.EqOp(t, "a r", n.data.content("r"))
				} else {
					must.EqOp(t, client.DataLost, dataIn(n, "r", cluster.DataGivenUp).Why)
				}
			})
		}
	}
}

// The record of an ended allocation is lost, and its data is not: the client keeps it for the replacement.
func TestDiskLeft_ended(t *testing.T) {
	n := newDisks(t)
	n.place(disk("a", ""))
	reaches(n, "a", cluster.ClientRunning, time.Second)
	ends(n, "a", time.Minute)
	loseRecord(n, "a", client.DiskFound)
	n.run(time.Minute)
	n.answer()
	n.run(time.Minute)
	must.EqOp(t, cluster.DataKept, n.servers["a"].DataOut.StateOf())
	n.place(disk("r", "a"))
	reaches(n, "r", cluster.ClientRunning, time.Minute)
	must.EqOp(t, "a r", n.data.content("r"))
}

// A replacement whose record is lost before it has started has the data of another allocation or gets it again.
func TestDiskLeft_ofAReplacement(t *testing.T) {
	for name, c := range map[string]struct {
		local bool
		in    cluster.DataState
		want  string
	}{
		"on its node":               {true, cluster.DataWaiting, "a r"},
		"copied, and not reported":  {false, cluster.DataWaiting, "a again r"},
		"copied, and reported":      {false, cluster.DataCopied, "a r"},
		"given up, and reported":    {false, cluster.DataGivenUp, "a r"},
		"copied, and the data died": {false, "", "a again r"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newDisks(t)
			n.data.answers = []dataScript{moved("a", "a again")}
			if c.local {
				n.place(disk("a", ""))
				reaches(n, "a", cluster.ClientRunning, time.Second)
				ends(n, "a", time.Minute)
			}
			r := disk("r", "a")
			if c.in != "" {
				r.DataIn = &cluster.DataMove{State: c.in, Peer: "a"}
			}
			n.data.folders["r"] = "a"
			delete(n.data.folders, "a")
			n.disk["r"] = client.OrphanRecord("r", nil, n.bootID)
			n.disk["r"].Disk = client.DiskFound
			n.crash()
			n.place(r)
			reaches(n, "r", cluster.ClientRunning, time.Minute)
			must.EqOp(t, c.want, n.data.content("r"))
		})
	}
}

// The servers do not list an orphan: its data is removed when they have answered.
func TestDiskLeft_unlisted(t *testing.T) {
	n := newDisks(t)
	n.disk["a"] = client.OrphanRecord("a", nil, n.bootID)
	n.disk["a"].Disk = client.DiskFound
	n.crash()
	n.run(time.Hour)
	must.MapContainsKey(t, n.disk, "a")
	n.answer()
	n.run(time.Second)
	must.MapEmpty(t, n.disk)
	must.Eq(t, []cluster.AllocID{"a"}, n.discarded)
}

// Another file system is mounted in the data. Bug: the event and the status did not name it, and the drain was complete.
func TestData_mounts(t *testing.T) {
	n := newDisks(t)
	answer := moved("p", "p")
	answer.answer.Mounts = `"alloc/data/m"`
	n.data.answers = []dataScript{answer}
	n.place(disk("r", "p"))
	reaches(n, "r", cluster.ClientRunning, time.Minute)
	const why = `other file systems are mounted in the data, and are not copied: "alloc/data/m"`
	must.EqOp(t, why, dataIn(n, "r", cluster.DataCopied).Why)
	must.StrContains(t, n.messages("r", "web"), "special files are left out; "+why)
	restarts(n, time.Minute)
	must.EqOp(t, why, dataIn(n, "r", cluster.DataCopied).Why)
}
