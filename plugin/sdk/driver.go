package sdk

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
)

// Driver is what each driver implements. The calls have the meaning of [driver.Driver].
type Driver interface {
	// Info returns what never changes.
	Info() Info
	// Configure is called once, before all other calls except Info, with the plugin's config as
	// Info's ConfigSchema describes it. Use [Decode].
	Configure(config []byte) error
	Capabilities() driver.Capabilities
	// Fingerprints reports the health at once and then at each change, until the context ends.
	Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error

	// Start starts a task. After a restart of the driver, Recover gets the state. A task id that
	// was used before is an error.
	Start(ctx context.Context, task *driver.TaskConfig) (state []byte, err error)
	// Recover takes a task over. task and state are from its start. version is the handle version
	// that the driver had then; it is never newer than Info's.
	Recover(ctx context.Context, task *driver.TaskConfig, version int32, state []byte) error
	// Wait returns when the task has ended, also if it ended long ago and was stopped.
	Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error)
	// Stop returns when the task has stopped. It returns nil if the task has already ended.
	Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error
	Destroy(ctx context.Context, id driver.TaskID, force bool) error
	Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error)
}

// Info describes a plugin.
type Info struct {
	// Name is the name of the driver in a job, or the name of the device plugin in logs and on the
	// node. It has up to 64 letters, digits, underscores and hyphens.
	Name string
	// Version is the plugin's own version in the form 1.2.3.
	Version string
	// ConfigSchema is the schema of the plugin's config. Nil means that there are no keys.
	ConfigSchema *Spec
	// TaskSchema is the schema of a task's config. Nil means that there are no keys. Device plugins
	// leave it nil.
	TaskSchema *Spec
	// HandleVersion is the version of the state that Start returns. Increase it when an older
	// driver cannot read the state. Handles with a higher version are refused. Device plugins leave
	// it zero.
	HandleVersion int32
}

// Signaler is a driver that can send signals. An unknown name of a signal is an error and has no
// effect. Set SendSignals in the capabilities.
type Signaler interface {
	Signal(ctx context.Context, id driver.TaskID, signal string) error
}

// Execer is a driver that can run commands beside a task. Set Exec in the capabilities. The client of
// this project does not call it.
type Execer interface {
	Exec(ctx context.Context, id driver.TaskID, command []string, timeout time.Duration) (driver.Output, error)
}

// StreamExecer is a driver that can run interactive commands beside a task. Set Exec in the
// capabilities. The driver must not use the streams after it returns.
type StreamExecer interface {
	ExecStreaming(ctx context.Context, id driver.TaskID, command []string, streams driver.ExecStreams) (driver.ExitResult, error)
}

// StatsSource is a driver that measures. Stats returns nil when the task has ended.
type StatsSource interface {
	Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error
}

// EventSource is a driver that reports events of its tasks, until the context ends.
type EventSource interface {
	Events(ctx context.Context, report func(driver.Event)) error
}

// Networker is a driver that creates the network of an allocation. Set MustCreateNetwork in the
// capabilities.
type Networker interface {
	CreateNetwork(ctx context.Context, alloc, hostname string) (network *driver.Network, created bool, err error)
	DestroyNetwork(ctx context.Context, alloc string, network *driver.Network) error
}

// Closer is a plugin that must clean up before it exits, for example close a connection. Close is
// called when the host stops the plugin, and not when the plugin is killed. It has two seconds, or
// 1.5 seconds for a device plugin. Tasks continue to run: the next process of a driver recovers
// them, and the next process of a device plugin reports their devices with the same ids.
type Closer interface {
	Close(ctx context.Context) error
}

// Recoverable marks an error of Start or Reserve after which a retry may succeed.
func Recoverable(err error) error {
	return &driver.Error{Class: driver.Recoverable, Call: "driver", Err: err}
}

// Spec is the schema of a config, or of a part of it. Create it with [Attribute], [Default],
// [Block], [Blocks] and [Object].
type Spec = hclspec.Spec

// Block returns a schema of an object below a key, such as "limits { files = 10 }".
func Block(nested *Spec, required bool) *Spec {
	return &Spec{Block: &hclspec.Spec_BlockValue{BlockValue: &hclspec.Block{Required: required, Nested: nested}}}
}

// Blocks returns a schema of a list of objects below a key. least and most limit the number of
// objects. Zero means no limit.
func Blocks(nested *Spec, least, most uint64) *Spec {
	return &Spec{Block: &hclspec.Spec_BlockList{BlockList: &hclspec.BlockList{Min: least, Max: most, Nested: nested}}}
}

// Attribute returns a schema of a value. kind is an HCL type expression, such as "string", "bool"
// or "list(string)". The name is the key in the [Object].
func Attribute(kind string, required bool) *Spec {
	return &Spec{Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Type: kind, Required: required}}}
}

// Default returns a schema with a default value. expression is an HCL expression.
func Default(primary *Spec, expression string) *Spec {
	literal := &Spec{Block: &hclspec.Spec_Literal{Literal: &hclspec.Literal{Value: expression}}}
	return &Spec{Block: &hclspec.Spec_Default{Default: &hclspec.Default{Primary: primary, Default: literal}}}
}

// Object returns a schema with a value for each key. The key is the name of a value without a name.
func Object(attributes map[string]*Spec) *Spec {
	for key, spec := range attributes {
		if a := attributeOf(spec); a != nil && a.Name == "" {
			a.Name = key
		}
	}
	return &Spec{Block: &hclspec.Spec_Object{Object: &hclspec.Object{Attributes: attributes}}}
}

// attributeOf returns the attribute of a schema or of its primary part, or nil.
func attributeOf(spec *Spec) *hclspec.Attr {
	if d := spec.GetDefault(); d != nil {
		return d.GetPrimary().GetAttr()
	}
	return spec.GetAttr()
}

// checkVersion refuses the handle of a newer driver.
func checkVersion(info Info, version int32) error {
	if version > info.HandleVersion {
		return fmt.Errorf("the handle has version %d and this %s driver reads up to %d: run the newer driver, or stop the task", version, info.Name, info.HandleVersion)
	}
	return nil
}
