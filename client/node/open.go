package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/disks"
	"github.com/seed-f9cf0b39/nodedrain/client/fingerprint"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/client/watchdog"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/socket"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

// Options are the options of [Open].
type Options struct {
	// Config is required.
	Config *config.Config
	// Program is the absolute path of the program that serves "plugin NAME" and the log keeper.
	// Empty means the running program.
	Program string
	// LogKeeper are the arguments with which the program runs as a log keeper; required.
	LogKeeper []string
	// Version is the version of the client, an attribute of the node.
	Version string
	// Servers are the servers of the node. Nil means the servers of Config, over the HTTP API.
	Servers Servers
	// Logger receives messages for operators. Nil means no log.
	Logger *slog.Logger
	// GroupsOptional permits a client that runs as root to work without control groups if it cannot
	// create them. Then only drivers can kill tasks.
	GroupsOptional bool
	// keepEnded is KeepEnded of the core's options.
	keepEnded int
	// alone: the client has no servers that could accept it.
	alone bool
	// nodeLocks is the folder of the locks of nodes. Empty is that of this machine.
	nodeLocks string
}

// Versions of the content of records.
const (
	allocRecords  = 1
	pluginRecords = 1
	reportRecords = 1
)

// Open opens the data directory, and restores the state of an earlier client. It may start new
// plugins to read their names, and waits for the servers, at most until the context ends. An error states
// what an operator must change; after the end of the context it may wrap the context's cause.
func Open(ctx context.Context, o Options) (*Node, error) {
	return open(ctx, o, func(*leftovers) error { return nil })
}

// open opens the data directory. change may change the records before the core gets them.
func open(ctx context.Context, o Options, change func(*leftovers) error) (*Node, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Program == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding the path of this program: %w", err)
		}
		o.Program = program
	}
	h, err := openHome(o.Config.DataDir, cmp.Or(o.nodeLocks, filepath.Join(machineFolder(), nodeLocksDir)), o.alone, o.Logger)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	n := &Node{home: h, logger: o.Logger, end: end, closers: []func() error{h.close}}
	if err := n.open(ctx, life, o, change); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.reach = newReach(n)
	return n, nil
}

// takeRecords reads the records, and finds control groups without one. A client that has either waits until
// the servers accept it, unless it works alone.
func (n *Node) takeRecords(ctx context.Context, alone bool, groups cgroup.Hierarchies, servers Servers, change func(*leftovers) error) (store *record.Disk, left *leftovers, err error) {
	if store, err = record.OpenDisk(n.home.file(recordsDir)); err != nil {
		return nil, nil, err
	}
	if left, err = readRecords(store); err != nil {
		return nil, nil, err
	}
	if err = errors.Join(claimGroups(groups, n.ID(), left.allocs), logUnowned(groups, n.logger)); err != nil {
		return nil, nil, err
	}
	if left.groups, err = ownGroups(groups, n.ID()); err != nil {
		return nil, nil, err
	}
	if err = change(left); err != nil {
		return nil, nil, err
	}
	if alone || !left.any() {
		return store, left, nil
	}
	n.logger.Info("an earlier client has left records or tasks on this node; the client waits until a server accepts it")
	if n.accepted, err = admit(ctx, servers, newFailures(n.logger), n.logger); n.accepted != nil {
		n.closers = append(n.closers, n.accepted.Close)
	}
	return store, left, err
}

func (n *Node) open(ctx, life context.Context, o Options, change func(*leftovers) error) (err error) {
	if n.bootID, err = process.BootID(); err != nil {
		return err
	}
	machine, err := fingerprint.Take(fingerprint.Options{DataDir: n.home.path, Version: o.Version, Interface: o.Config.NetworkInterface})
	if err != nil {
		return err
	}
	groups, err := findGroups(ctx, o.GroupsOptional, n.logger)
	if err != nil {
		return err
	}
	servers, err := n.serversOf(o)
	if err != nil {
		return err
	}
	self := describe(o.Config, n.home.identity, machine, groups, servers)
	store, left, err := n.takeRecords(ctx, o.alone, groups, servers, change)
	if err != nil {
		return err
	}
	sockets, err := socketsOf(o.Config)
	if err != nil {
		return err
	}
	dirs, err := allocdir.Open(n.home.file(allocsDir))
	if err != nil {
		return err
	}
	n.closers = append(n.closers, dirs.Close)
	programs, err := findPlugins(ctx, pluginOptions{
		config: o.Config, program: o.Program, sockets: sockets, logs: n.home.file(pluginsDir),
		groups: groups.Kind() != "none", records: left.pluginTable, kept: left.plugins,
		reports: left.reportTable, reported: left.reports, logger: n.logger,
	})
	if err != nil {
		return err
	}
	_, usesRawExec := programs.drivers[rawExec]
	n.trust = newTrust(servers, n.home, os.Geteuid() == 0 && usesRawExec, n.logger)
	happen := new(events)
	n.shell = &shell{
		life:    life,
		drivers: newDrivers(programs.drivers, o.Config.Limits.DriverCalls, happen, n.trust, n.logger),
		devices: newDevices(programs.devices, o.Config.Limits.DriverCalls, happen, n.logger),
		records: left.allocTable,
		contact: newContact(self, servers, n.logger),
		logger:  n.logger, disk: newSharedTurns(diskWrites),
	}
	n.shell.storage = n.newStorage(sockets)
	n.shell.tasks = n.newTasks(life, o, dirs, groups, filepath.Join(sockets, shimsDir))
	dataServers, _ := servers.(DataServers)
	n.shell.data = disks.New(disks.Options{Servers: dataServers, Folders: dirs, Tasks: n.shell.tasks.tasksOf, Logger: n.logger})
	if err := disks.RemoveIncoming(ctx, dirs, left.allocs); err != nil {
		n.logger.Warn("data that has arrived for an earlier client could not be removed", "error", err)
	}
	volumes, err := volumeOptions(n.shell, servers, n.home.path, left)
	if err != nil {
		return err
	}
	stopped, err := n.takeWatchdog(ctx, o, groups, left.allocs)
	if err != nil {
		return err
	}
	lost, err := findOrphans(n.shell.tasks.dirs, left, n.bootID, n.logger)
	if err != nil {
		return err
	}
	n.shell.store, n.shell.damaged, n.shell.roster = store, lost.damaged, newRoster(n.shell.drivers, left.allocs, lost.records)
	core, err := client.New(client.Options{
		Node: n.ID(), Shell: n.shell, BootID: n.bootID, NewTaskID: newTaskID,
		Drivers: n.shell.drivers.names(), DevicePlugins: n.shell.devices.names(), LastDevices: programs.lastDevices(),
		Records: append(left.allocs, lost.records...), LastContact: n.home.contact(n.bootID), Stopped: stopped, Logger: n.logger, MaxStarts: o.Config.Limits.DriverCalls, StartTimeouts: n.shell.drivers.startTimeouts(o.Config.Plugins),
		KeepEnded: o.keepEnded, Volumes: volumes, HoldLimit: holdLimit(o.Config), DataRetention: o.Config.Limits.DataRetention, Version: n.home.clusterVersion(),
	})
	if err != nil {
		return err
	}
	n.connect(core, happen)
	return nil
}

// connect makes the shell send its events to the core.
func (n *Node) connect(core *client.Core, happen *events) {
	n.core, happen.pluginEvents, n.shell.storage.events = core, core, core
	n.shell.storage.restartTask = core.Operator().Restart
	n.shell.contact.answered, n.shell.contact.receive = n.answered, n.receive
	n.shell.guards.stopped = core.StoppedByWatchdog
	n.shell.contact.foreign, n.shell.contact.forgotten = core.Foreign, core.Forgotten
	// The first registration has the devices of the earlier client. Otherwise they would vanish until
	// their plugins have started.
	n.shell.contact.publish(core.Facts())
}

// newTasks returns what starts and removes tasks for the shell.
func (n *Node) newTasks(life context.Context, o Options, dirs *allocdir.Folders, groups cgroup.Hierarchies, shims string) *tasks {
	return &tasks{
		node: n.shell.contact.newest, region: o.Config.Region, dirs: dirs, groups: groups, logger: n.logger,
		logs:    newLogs(life, keeper.Command{Path: o.Program, Args: o.LogKeeper}, n.logger),
		rotates: n.shell.drivers.rotatesLogs, storage: n.shell.storage, shims: shims,
	}
}

// takeWatchdog replaces the watchdog of an earlier client, and returns what it has stopped. It removes notes
// that no later client needs.
func (n *Node) takeWatchdog(ctx context.Context, o Options, groups cgroup.Hierarchies, records []*client.Record) ([]guard.Stopped, error) {
	dir := n.home.file(watchdogDir)
	n.shell.guards = newGuards(o, dir, groups, n.home.contact(n.bootID), records, n.logger)
	n.shell.tasks.mayStart = n.shell.guards.mayStart
	n.shell.guards.take(ctx)
	n.closers = append(n.closers, func() error {
		n.shell.guards.release()
		return nil
	})
	notes, err := watchdog.Notes(dir)
	if err != nil {
		return nil, err
	}
	var stopped []guard.Stopped
	for _, note := range notes {
		if slices.ContainsFunc(records, func(r *client.Record) bool { return r.Alloc.ID == note.Alloc && !r.Ended }) {
			stopped = append(stopped, note)
		} else if err := watchdog.Forget(dir, note.Alloc); err != nil {
			return nil, err
		}
	}
	return stopped, nil
}

// serversOf returns the servers of the options, or else those of the configuration.
func (n *Node) serversOf(o Options) (Servers, error) {
	if o.Servers != nil {
		return o.Servers, nil
	}
	remote, err := newHTTPServers(o.Config.Servers, n.home.identity, uuid.NewString())
	if err != nil {
		return nil, err
	}
	n.closers = append(n.closers, remote.close)
	return remote, nil
}

// newStorage returns the supervisor of the node's storage plugins.
func (n *Node) newStorage(sockets string) *storagePlugins {
	return &storagePlugins{
		sockets: filepath.Join(sockets, storageDir), connect: connectStorage, logger: n.logger,
		publish: func(p []*cluster.StoragePlugin) { n.shell.contact.publishStorage(p) },
	}
}

// holdLimit is the HoldLimit of the core's options.
func holdLimit(c *config.Config) time.Duration {
	return cmp.Or(c.Limits.HoldLimit, client.DefaultHoldLimit)
}

// findGroups returns the hierarchies in which the node can create control groups. If there is none,
// only drivers can kill tasks.
func findGroups(ctx context.Context, optional bool, logger *slog.Logger) (cgroup.Hierarchies, error) {
	found, err := cgroup.Find("/")
	if err != nil || found.Kind() == "none" {
		return found, err
	}
	// Another client may try at the same time.
	probe, err := found.Create("nodedrain-probe-"+strconv.Itoa(os.Getpid()), cgroup.Limits{})
	if err == nil {
		if none := probe.SetOwner("probe"); none != nil {
			logger.Warn("tasks whose records and folders are lost will not be found", "error", none)
		}
		return found, probe.Remove(ctx)
	}
	if os.Geteuid() == 0 && !optional {
		return found, err
	}
	logger.Warn("this user cannot create control groups; only drivers can kill tasks", "error", err)
	return cgroup.Hierarchies{}, nil
}

// describe returns the node for its registration, without drivers, devices and storage plugins.
func describe(c *config.Config, self identity, m *fingerprint.Machine, groups cgroup.Hierarchies, servers Servers) *cluster.Node {
	n := &cluster.Node{
		ID: self.ID, SecretID: self.Secret, Name: c.Name, Datacenter: c.Datacenter, NodeClass: c.Class, NodePool: c.Pool,
		Status: cluster.NodeReady, Attributes: m.Attributes, Meta: c.Meta, Resources: m.Resources, Reserved: c.Reserved,
		MaxAllocs: c.Limits.MaxAllocs, ReportsDrivers: true, MaxKillTimeout: c.Limits.MaxKillTimeout,
		Network: &cluster.NodeNetwork{
			Device: m.Network.Device, IP: m.Network.IP, Reserved: c.ReservedPorts,
			MinDynamicPort: cmp.Or(c.MinDynamicPort, cluster.DefaultMinDynamicPort),
			MaxDynamicPort: cmp.Or(c.MaxDynamicPort, cluster.DefaultMaxDynamicPort),
		},
	}
	for _, amount := range []struct {
		to   *int64
		from int64
	}{
		{&n.Resources.CPU, c.Resources.CPU}, {&n.Resources.MemoryMB, c.Resources.MemoryMB}, {&n.Resources.DiskMB, c.Resources.DiskMB},
	} {
		if amount.from > 0 {
			*amount.to = amount.from
		}
	}
	n.Attributes["cpu.totalcompute"] = strconv.FormatInt(n.Resources.CPU, 10)
	n.Attributes["cpu.usablecompute"] = strconv.FormatInt(max(0, n.Resources.CPU-n.Reserved.CPU), 10)
	if groups.Pins() {
		n.Cores = m.Cores.Without(c.ReservedCores)
	}
	n.Attributes["cpu.reservablecores"] = strconv.Itoa(len(n.Cores))
	if kind := groups.Kind(); kind != "none" {
		n.Attributes["unique.cgroup.version"] = kind
		n.Attributes["os.cgroups.version"] = strings.TrimPrefix(kind, "v")
		n.Attributes[variables.ParentCgroup] = groups.Parent()
	}
	if _, is := servers.(VolumeServers); is {
		// Also while no storage plugin answers: volumes may be mounted, and the servers use these
		// limits.
		n.VolumeAllowance, n.HoldLimit = holdLimit(c), holdLimit(c)
	}
	n.Canonicalize()
	return n
}

// leftovers are what an earlier client has left.
type leftovers struct {
	store       record.Store
	allocTable  record.Table[*client.Record]
	pluginTable record.Table[pluginRecord]
	reportTable reportTable
	volumeTable record.Table[*volume.Record]
	allocs      []*client.Record
	volumes     []*volume.Record
	plugins     map[string]pluginRecord
	reports     map[string]pluginReport
	damaged     []record.Damaged
	// groups are the tasks with a control group of the node, by allocation.
	groups map[cluster.AllocID][]string
}

// any reports whether there is something of an earlier client.
func (l *leftovers) any() bool {
	return len(l.allocs)+len(l.volumes)+len(l.plugins)+len(l.reports)+len(l.damaged)+len(l.groups) > 0
}

func readRecords(store record.Store) (*leftovers, error) {
	l := &leftovers{
		store:       store,
		allocTable:  record.NewTable[*client.Record](store, "alloc", allocRecords),
		pluginTable: record.NewTable[pluginRecord](store, "plugin", pluginRecords),
		volumeTable: record.NewTable[*volume.Record](store, "volume", volumeRecords),
		reportTable: record.NewTable[pluginReport](store, "report", reportRecords),
		plugins:     make(map[string]pluginRecord),
		reports:     make(map[string]pluginReport),
	}
	all, damaged, err := store.All()
	if err != nil {
		return nil, err
	}
	l.damaged = damaged
	return l, errors.Join(
		each(l.allocTable, all, func(_ string, r *client.Record) { l.allocs = append(l.allocs, r) }),
		each(l.pluginTable, all, func(id string, r pluginRecord) { l.plugins[id] = r }),
		each(l.reportTable, all, func(id string, r pluginReport) { l.reports[id] = r }),
		each(l.volumeTable, all, func(_ string, r *volume.Record) { l.volumes = append(l.volumes, r) }),
	)
}

// each calls take with each record of one table. All contains the records of all tables.
func each[T any](t record.Table[T], all []record.Record, take func(id string, value T)) error {
	rows, err := t.Select(all)
	for _, row := range rows {
		take(row.ID, row.Value)
	}
	return err
}

// socketsOf creates the folder for the sockets of a client. Its path is short, because the path of
// a socket has at most 107 bytes. Without a configured path it is derived from the data directory,
// so that the next client uses the same path.
func socketsOf(c *config.Config) (string, error) {
	dir := c.RunDir
	if dir == "" {
		real, err := filepath.EvalSymlinks(c.DataDir)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(machineFolder(), shortName(real))
	}
	return dir, socket.MakeFolder(dir, socket.MaxPath-1-config.MaxRunDir)
}

// shortName returns a hash of a text with 16 characters.
func shortName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// shimsDir is the folder of the shims of raw_exec, below the folder of all sockets. The configuration of
// raw_exec may name another one.
const shimsDir = "shims"

// withRawExec adds the keys that the client sets to the configuration of raw_exec.
func withRawExec(own json.RawMessage, shims string) (json.RawMessage, error) {
	settings := make(map[string]json.RawMessage)
	if len(own) > 0 {
		if err := json.Unmarshal(own, &settings); err != nil {
			return nil, fmt.Errorf("the configuration of raw_exec: %w", err)
		}
	}
	if settings["enabled"] == nil {
		settings["enabled"] = json.RawMessage("true")
	}
	if settings["shim_dir"] == nil {
		dir, err := json.Marshal(shims)
		if err != nil {
			return nil, err
		}
		settings["shim_dir"] = dir
	}
	return json.Marshal(settings)
}
