package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Config is what a [Server] is built from. ID and Transport are required.
type Config struct {
	// ID names the server among its peers.
	ID raft.ServerID
	// Transport carries raft's messages. The server closes it if it can be
	// closed.
	Transport raft.Transport
	// Voters are the servers of a new cluster, this one included. All of them get the same list.
	// Nil if the stores hold the cluster's configuration.
	Voters []raft.Server
	// Logger receives messages for operators. Nil discards them.
	Logger hclog.Logger

	// Log, Stable and Snapshots are raft's stores. Nil is in memory.
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	// Raft are raft's own settings, or nil for its defaults. LocalID and Logger
	// are set by the server.
	Raft *raft.Config

	// Drainer configures the drainer, but for its Logger and Raft.
	Drainer drainer.NodeDrainerConfig
	// Scheduler configures the scheduler, but for its Logger, Snapshot and
	// Applier.
	Scheduler scheduler.Config
	// Collect sets when ended work is deleted. Its zero value means the defaults.
	Collect collect.Options
	// Controllers calls the controllers of storage plugins, or is nil: volumes that a controller must
	// attach or detach then wait.
	Controllers Controllers
	// WhileLeading runs on the leader in its own goroutine, from the beginning of each term until
	// its context ends; or nil. The server waits for it at the end of the term. A restored snapshot
	// begins a new term. The state may lack entries of earlier leaders: see [Server.CaughtUp].
	WhileLeading func(context.Context)
	// OnApply is called after each entry, in the order of the log; or nil. Raft
	// waits for it.
	OnApply func(shims.Applied)
	// OnAnswer is called with each raft write of this server and its answer; or nil. See
	// [shims.Options].
	OnAnswer func(shims.Message, shims.Answer)
}

// withDefaults returns c with its zero values filled in. The error names a field that is missing or
// wrong.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.ID == "":
		return c, errors.New("server: Config.ID is required")
	case c.Transport == nil:
		return c, errors.New("server: Config.Transport is required")
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	c.Logger = c.Logger.Named(string(c.ID))
	memory := raft.NewInmemStore()
	if c.Log == nil {
		c.Log = memory
	}
	if c.Stable == nil {
		c.Stable = memory
	}
	if c.Snapshots == nil {
		c.Snapshots = new(MemorySnapshots)
	}
	settings := raft.DefaultConfig()
	settings.BatchApplyCh = true
	if c.Raft != nil {
		*settings = *c.Raft
	}
	settings.LocalID = c.ID
	settings.Logger = c.Logger.Named("raft")
	c.Raft = settings
	if err := raft.ValidateConfig(settings); err != nil {
		return c, fmt.Errorf("server: Config.Raft: %w", err)
	}
	return c, nil
}
