package client

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Defaults of [Options].
const (
	DefaultStartTimeout    = 2 * time.Minute
	DefaultMinRelaunch     = 5 * time.Second
	DefaultMaxRelaunch     = 2 * time.Minute
	DefaultMinRetry        = 200 * time.Millisecond
	DefaultMaxRetry        = 10 * time.Second
	DefaultPublishInterval = 5 * time.Second
	DefaultKeepEnded       = 50
	DefaultMaxStarts       = 64
	DefaultHoldLimit       = 10 * time.Minute
	DefaultDataRetention   = time.Hour
)

// Options are what a [Core] is built from.
type Options struct {
	// Node is the id of the node; required.
	Node cluster.NodeID
	// Shell acts for the core; required.
	Shell Shell
	// BootID names the present boot of the machine; required.
	BootID string
	// NewTaskID returns a new id that the node has never used before; required. A step calls it, so
	// it must not block.
	NewTaskID func(alloc cluster.AllocID, task string) driver.TaskID
	// Drivers are the names of the node's drivers. The core launches all of them.
	Drivers []string
	// DevicePlugins are the names of the node's device plugins. The core launches all of them.
	DevicePlugins []string
	// LastDevices are the devices that the plugins have last reported to an earlier client, by
	// plugin. They are unhealthy until the plugin reports. The core owns them.
	LastDevices map[string][]*cluster.DeviceGroup
	// Records are the records of an earlier core. The core owns them.
	Records []*Record
	// LastContact is the last time that an earlier client passed to [Core.Contact] since the
	// machine booted, or zero.
	LastContact guard.Contact
	// Version is the cluster version of the last answer to an earlier client, or zero.
	Version cluster.Version
	// Stopped are the allocations in which the watchdog of an earlier client has stopped tasks.
	Stopped []guard.Stopped
	// Volumes are the options for the volumes of the node: shell, records, mount table and folder.
	// The core sets the other fields. Nil means that the node mounts no volumes.
	Volumes *volume.Options
	// Logger receives messages for operators. Nil means no log.
	Logger *slog.Logger

	// StartTimeout is how long a driver may take to start a task. Then the client kills the
	// driver's process and starts it again. Zero is [DefaultStartTimeout].
	StartTimeout time.Duration
	// StartTimeouts are the timeouts of single drivers, by name, for example of a driver that
	// downloads images. If the value is zero or missing, StartTimeout applies.
	StartTimeouts map[string]time.Duration
	// MaxStarts is the largest number of tasks that each driver starts at the same time. One job may
	// have a quarter of them. Others wait, and jobs take turns. Zero or less is [DefaultMaxStarts].
	MaxStarts int
	// MinRelaunch and MaxRelaunch are the shortest and the longest wait before the core restarts a
	// plugin that died. The wait is zero for the first restart of a plugin that ran for
	// MaxRelaunch. Zero is [DefaultMinRelaunch] and [DefaultMaxRelaunch].
	MinRelaunch, MaxRelaunch time.Duration
	// MinRetry and MaxRetry are the shortest and the longest wait before the core retries a failed
	// effect. The wait doubles with each consecutive failure. Zero is [DefaultMinRetry] and
	// [DefaultMaxRetry].
	MinRetry, MaxRetry time.Duration
	// PublishInterval is the least time between two writes of the drivers' health and the devices.
	// Zero is [DefaultPublishInterval].
	PublishInterval time.Duration
	// HoldLimit is how long a storage plugin that must stop waits for the volumes that it serves,
	// and how long an ended allocation waits for the unmount of its volumes. Zero is
	// [DefaultHoldLimit].
	HoldLimit time.Duration
	// DataRetention is how long the data of an ended allocation is kept for a replacement. Zero is
	// [DefaultDataRetention].
	DataRetention time.Duration
	// KeepEnded is the number of ended allocations whose folders the client keeps. Zero is
	// [DefaultKeepEnded]; a negative number keeps none.
	KeepEnded int
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Node == "":
		return o, errors.New("client: Options.Node is required")
	case o.Shell == nil:
		return o, errors.New("client: Options.Shell is required")
	case o.BootID == "":
		return o, errors.New("client: Options.BootID is required")
	case o.NewTaskID == nil:
		return o, errors.New("client: Options.NewTaskID is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.KeepEnded == 0 {
		o.KeepEnded = DefaultKeepEnded
	}
	if o.MaxStarts <= 0 {
		o.MaxStarts = DefaultMaxStarts
	}
	for _, timeout := range o.StartTimeouts {
		if timeout < 0 {
			return o, errors.New("client: a duration of Options is negative")
		}
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&o.StartTimeout, DefaultStartTimeout},
		{&o.MinRelaunch, DefaultMinRelaunch}, {&o.MaxRelaunch, DefaultMaxRelaunch},
		{&o.MinRetry, DefaultMinRetry}, {&o.MaxRetry, DefaultMaxRetry},
		{&o.PublishInterval, DefaultPublishInterval}, {&o.HoldLimit, DefaultHoldLimit},
		{&o.DataRetention, DefaultDataRetention},
	} {
		if *d.field < 0 {
			return o, errors.New("client: a duration of Options is negative")
		}
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	return o, nil
}

// startTimeout is how long a driver may take to start a task.
func (o Options) startTimeout(driver string) time.Duration {
	return cmp.Or(o.StartTimeouts[driver], o.StartTimeout)
}

// backoff is the wait after a number of consecutive failures, from least to most.
func backoff(failures int, least, most time.Duration) time.Duration {
	wait := least
	for range failures - 1 {
		if wait >= most/2 {
			return most
		}
		wait *= 2
	}
	return min(wait, most)
}
