package node

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// A client reads the records that an older client has written. The files of the folder never
// change: a field that is renamed, or a phase with another number, needs a new version of the
// records.
func TestReadRecords_ofAnOlderClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, os.CopyFS(dir, os.DirFS("testdata/records-1")))
	store, err := record.OpenDisk(dir)
	must.NoError(t, err)
	got, err := readRecords(store)
	must.NoError(t, err)
	must.SliceEmpty(t, got.damaged)
	must.Eq(t, []*client.Record{allocRecord()}, got.allocs)
	must.Eq(t, []*volume.Record{volumeRecord()}, got.volumes)
	must.Eq(t, map[string]pluginRecord{"raw_exec": processRecord()}, got.plugins)
}

// The record of an allocation with the deepest config that a client accepts can be read.
func TestReadRecords_deepConfig(t *testing.T) {
	t.Parallel()
	store, err := record.OpenDisk(t.TempDir())
	must.NoError(t, err)
	left, err := readRecords(store)
	must.NoError(t, err)
	deep := allocRecord()
	deep.Alloc.Job.TaskGroups[0].Tasks[0].Config = json.RawMessage(strings.Repeat(`{"a":`, 9_900) + "1" + strings.Repeat("}", 9_900))
	must.NoError(t, left.allocTable.Put("a1", deep))
	left, err = readRecords(store)
	must.NoError(t, err)
	must.Eq(t, []*client.Record{deep}, left.allocs)
}

// allocRecord is a record in which each field of the first release is set.
func allocRecord() *client.Record {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	healthy := true
	task := func(name string, phase client.Phase, end client.End) client.TaskRecord {
		return client.TaskRecord{
			Phase: phase, ID: "a1/" + driver.TaskID(name), Handle: driver.Handle{0, 1, 255}, HostCgroup: true, TurnAt: 1,
			Stopping: true, StopBegan: 2, Restarting: true, SignalAt: 3, End: end, Exit: &driver.ExitResult{Code: 7, Signal: 9, OOMKilled: true, Unknown: true},
			RunningSince: 4, RestartAt: 5, Restarts: 6, WindowBegan: 7,
			State: cluster.TaskState{
				Name: name, State: cluster.TaskRunning, Failed: true, Restarts: 8, LastRestart: at, StartedAt: at, FinishedAt: at,
				Events: []cluster.TaskEvent{{Type: "Started", Time: at, Message: "Task started by client"}},
			},
		}
	}
	return &client.Record{
		Alloc: &cluster.Allocation{
			ID: "a1", NodeID: "n1", Name: "web.web[0]", TaskGroup: "web",
			Job: &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
				Name: "web", Tasks: []*cluster.Task{{Name: "web", Driver: "raw_exec", KillTimeout: 5 * time.Second, Config: json.RawMessage(`{"command":"true"}`)}},
			}}},
		},
		ClusterID: "cluster", BootID: "boot", Received: 10, Stopping: true, StopBegan: 11, StopReason: "the node drains",
		RestartAll: true, RestartedAll: true, History: verdict.History{Healthy: &healthy}, HealthyAt: at, UnmountBegan: 12, VolumesLeft: true, HoldBegan: 13, HoldOver: true,
		Tasks: []client.TaskRecord{
			task("waiting", client.PhaseWaiting, client.EndNone), task("starting", client.PhaseStarting, client.EndExit),
			task("running", client.PhaseRunning, client.EndStopped), task("cleaning", client.PhaseCleaning, client.EndNotStarted),
			task("backoff", client.PhaseBackoff, client.EndRefused), task("dead", client.PhaseDead, client.EndLost),
		},
		Ended: true, EndedAt: at, ClientStatus: cluster.ClientRunning,
	}
}

// volumeRecord is a record in which each field is set.
func volumeRecord() *volume.Record {
	usage := storage.Usage{VolumeCapability: cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}, ReadOnly: true}
	options := &cluster.MountOptions{FSType: "ext4", Flags: []string{"noatime"}}
	r := &volume.Record{
		Volume: cluster.VolumeKey{Namespace: "default", ID: "data"}, BootID: "boot", Plugin: "disks", ExternalID: "ext",
	}
	for _, phase := range []volume.StagePhase{volume.Staging, volume.Staged, volume.Unstaging} {
		r.Stages = append(r.Stages, volume.StageRecord{Usage: usage, Phase: phase, Skipped: true, Options: options})
	}
	for _, phase := range []volume.RefPhase{volume.Claiming, volume.Held, volume.Publishing, volume.Published, volume.Releasing} {
		r.Refs = append(r.Refs, volume.RefRecord{Alloc: "a1", Usage: usage, Options: options, Phase: phase, Leaving: true})
	}
	return r
}

// processRecord is a record in which each field is set.
func processRecord() pluginRecord {
	return pluginRecord{Driver: "raw_exec", Device: "toys", Process: host.Record{
		Process: process.Identity{Boot: "boot", PID: 7, Start: 8}, Socket: "/run/nodedrain/s", Digest: "digest",
	}}
}
