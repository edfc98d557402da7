package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
)

// Info is a plugin's description of itself. Type and Name identify the plugin, not its file.
type Info struct {
	Type    Type
	Name    string
	Version string
	// APIVersion is the version of the API that the host has chosen.
	APIVersion string
}

// Instance is one generation of a plugin: see [Instance.Driver] and [Instance.Device]. It is safe for
// concurrent use. It owns the goroutines that watch the process. They end when the process ends, or
// after Detach.
type Instance struct {
	calls      calls
	driver     remote
	devices    devices
	generation uint64
	record     Record
	takenOver  bool
	info       Info

	client       *goplugin.Client
	process      *attached
	socketDir    string           // or empty
	connection   *grpc.ClientConn // nil before it is connected
	stopWatching func()           // or nil
	base         base.BasePluginClient

	detach sync.Once
	// detached is closed when the client has detached from the process.
	detached chan struct{}
	// done is closed after the process has ended and is cleaned up.
	done chan struct{}
}

// newInstance returns an instance whose process runs, and watches it.
func newInstance(o Options, generation uint64, client *goplugin.Client, a *attached, socketDir string) *Instance {
	i := &Instance{
		calls:      calls{options: o, gone: a.ended, cause: a.cause},
		generation: generation, client: client, process: a, socketDir: socketDir,
		done: make(chan struct{}), detached: make(chan struct{}),
	}
	i.calls.options.Logger = o.Logger.With("generation", generation)
	i.driver.calls, i.devices.calls = i.calls, i.calls
	go i.watch()
	return i
}

// logInterval is the time between two checks of a plugin's log size.
const logInterval = time.Minute

// drainDelay is the time to receive answers that the process sent before it ended.
const drainDelay = 100 * time.Millisecond

// watch waits for the end of the process, and limits the size of its log until then.
func (i *Instance) watch() {
	ticker := time.NewTicker(logInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := rotateLog(i.calls.options.LogFile, i.calls.options.MaxLogBytes); err != nil {
				i.calls.options.Logger.Warn("the log of the plugin was not rotated", "error", err)
			}
		case <-i.detached:
			return
		case <-i.process.ended:
			select {
			case <-i.detached:
				return
			case <-time.After(drainDelay):
			}
			// The process has ended, so Kill does not block.
			i.client.Kill()
			if i.socketDir != "" {
				_ = os.RemoveAll(i.socketDir)
			}
			removeSocket(context.Background(), i.process.socket)
			_ = i.process.process.Close()
			i.calls.options.Logger.Info("the plugin has ended", "pid", i.process.process.Identity().PID, "why", i.calls.cause.reason())
			close(i.done)
			return
		}
	}
}

// Driver returns the driver, or nil for a device plugin.
func (i *Instance) Driver() driver.Driver {
	if i.info.Type != Driver {
		return nil
	}
	return &i.driver
}

// Device returns the device plugin, or nil for a driver.
func (i *Instance) Device() device.Plugin {
	if i.info.Type != Device {
		return nil
	}
	return &i.devices
}

// Generation returns the number of this generation. Later generations have larger numbers.
func (i *Instance) Generation() uint64 { return i.generation }

// Info returns the plugin's description of itself.
func (i *Instance) Info() Info { return i.info }

// Record returns the record with which the next client can take the process over.
func (i *Instance) Record() Record { return i.record }

// TakenOver reports whether an earlier client has started the process.
func (i *Instance) TakenOver() bool { return i.takenOver }

// Done is closed after the process has ended.
func (i *Instance) Done() <-chan struct{} { return i.done }

// EndReason returns why the process ended, or an empty text if that is unknown. For a crash this is
// the first line that the process wrote about it, such as "panic: …". Call it after Done is closed.
func (i *Instance) EndReason() string { return i.calls.cause.reason() }

// Check returns an error unless the process serves. After an error the caller should kill the process.
func (i *Instance) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, i.calls.options.CallTimeout)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(i.connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	if err != nil {
		return i.calls.fail(ctx, "Check", err)
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return failText("Check", "the plugin does not serve: "+answer.GetStatus().String())
	}
	return nil
}

// Kill kills the process and waits for its end. Tasks outside the process continue. The error names
// a process that does not end before the context ends.
func (i *Instance) Kill(ctx context.Context) error {
	select {
	case <-i.process.ended: // the process has ended, and its pidfd may be closed
	default:
		if err := i.process.Kill(ctx); err != nil {
			return fmt.Errorf("killing the plugin: %w", err)
		}
	}
	select {
	case <-i.done:
		return nil
	case <-i.detached:
		return nil
	case <-ctx.Done():
	}
	// The context may have ended before the kill.
	timer := time.NewTimer(exitDelay)
	defer timer.Stop()
	select {
	case <-i.done:
		return nil
	case <-timer.C:
	}
	if d, err := i.process.process.Identity().Describe(); err == nil {
		return fmt.Errorf("the killed plugin does not end: %s", d)
	}
	return fmt.Errorf("the killed plugin does not end: %w", ctx.Err())
}

// stopTimeout is the timeout of each step of an orderly shutdown.
const stopTimeout = 2 * time.Second

// Shutdown requests the process to exit, and kills it if it does not. Tasks outside the process
// continue.
func (i *Instance) Shutdown(ctx context.Context) error {
	ending, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if i.info.Type == Driver {
		// Released plugins do not have this call.
		if _, err := i.driver.client.Shutdown(ending, &pb.ShutdownRequest{}); err != nil && classify(err) != driver.Unsupported {
			i.calls.options.Logger.Info("the plugin did not shut down", "error", plain(err.Error()))
		}
	}
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		i.client.Kill() // requests, waits two seconds, and kills
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-graceful:
	case <-timer.C: // go-plugin requests without a deadline
	case <-ctx.Done():
	}
	return i.Kill(ctx)
}

// Detach leaves the process running for the next client. The instance cannot be used after that.
func (i *Instance) Detach() {
	i.detach.Do(func() {
		close(i.detached)
		_ = i.connection.Close()
		if i.stopWatching != nil {
			i.stopWatching()
		}
	})
}

// call makes a call of a launch, with a deadline.
func call[Q, A any](ctx context.Context, i *Instance, method func(context.Context, Q, ...grpc.CallOption) (A, error), name string, request Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, i.calls.options.CallTimeout)
	defer cancel()
	return invoke(ctx, &i.calls, method, name, request)
}

// configure configures a new process.
func (i *Instance) configure(ctx context.Context, save func(Record) error) error {
	if err := save(i.record); err != nil {
		return fmt.Errorf("writing the record of the plugin: %w", err)
	}
	if err := i.describe(ctx); err != nil {
		return err
	}
	answer, err := call(ctx, i, i.base.ConfigSchema, "ConfigSchema", &base.ConfigSchemaRequest{})
	if err != nil {
		return err
	}
	own, err := schema.New(answer.GetSpec())
	if err != nil {
		return fmt.Errorf("the plugin's own config: %w", err)
	}
	config, err := own.Encode(i.calls.options.Config, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	_, err = call(ctx, i, i.base.SetConfig, "SetConfig", &base.SetConfigRequest{
		MsgpackConfig: config,
		NomadConfig: &base.NomadConfig{Driver: &base.NomadDriverConfig{
			ClientMinPort: i.calls.options.MinPort, ClientMaxPort: i.calls.options.MaxPort,
			// Released drivers panic without a topology.
			ClientTopology: &base.Topology{Distances: &base.SLIT{}},
		}},
		PluginApiVersion: i.info.APIVersion,
	})
	if err != nil {
		if class := driver.ClassOf(err); class != driver.Gone && class != driver.Deadline { // the plugin has answered
			err = fmt.Errorf("%w: %w", ErrConfig, err)
		}
		return err
	}
	return i.prepare(ctx)
}

// identify initializes the instance for a process that an earlier client has configured.
func (i *Instance) identify(ctx context.Context) error {
	if err := i.Check(ctx); err != nil {
		return err
	}
	if err := i.describe(ctx); err != nil {
		return err
	}
	return i.prepare(ctx)
}

// describe reads the description of the plugin.
func (i *Instance) describe(ctx context.Context) error {
	answer, err := call(ctx, i, i.base.PluginInfo, "PluginInfo", &base.PluginInfoRequest{})
	if err != nil {
		return err
	}
	i.info = Info{Type: Type(answer.GetType()), Name: answer.GetName(), Version: plain(answer.GetPluginVersion())}
	switch {
	case i.info.Type != Driver && i.info.Type != Device:
		return fmt.Errorf("the plugin is a %s, not a driver or a device plugin", answer.GetType())
	case i.calls.options.Type != 0 && i.info.Type != i.calls.options.Type:
		return fmt.Errorf("the plugin is a %s, not a %s", answer.GetType(), i.calls.options.Type)
	case !isName(i.info.Name):
		return fmt.Errorf("the plugin has the invalid name %q", plain(i.info.Name))
	}
	i.info.APIVersion, err = chooseVersion(answer.GetPluginApiVersions())
	return err
}

// isName reports whether the name is valid for a plugin. The name is part of attributes and
// constraints.
func isName(name string) bool { return names.MatchString(name) }

var names = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

var versions = regexp.MustCompile(`^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})$`)

// chooseVersion returns the version of the API that the host and the plugin have in common.
func chooseVersion(offered []string) (string, error) {
	for _, version := range offered {
		if !versions.MatchString(version) {
			return "", fmt.Errorf("the plugin speaks the invalid API version %q", plain(version))
		}
	}
	if !slices.ContainsFunc(offered, func(v string) bool { return strings.TrimPrefix(v, "v") == strings.TrimPrefix(plugin.APIVersion, "v") }) {
		return "", fmt.Errorf("the plugin speaks the API versions %q, and the client speaks only %s", offered, plugin.APIVersion)
	}
	return plugin.APIVersion, nil
}

// prepare reads the properties that do not change while a driver runs.
func (i *Instance) prepare(ctx context.Context) error {
	if i.info.Type != Driver {
		return nil
	}
	if _, err := call(ctx, i, i.driver.client.Init, "Init", &pb.InitRequest{}); err != nil && driver.ClassOf(err) != driver.Unsupported {
		return err
	}
	tasks, err := call(ctx, i, i.driver.client.TaskConfigSchema, "TaskConfigSchema", &pb.TaskConfigSchemaRequest{})
	if err != nil {
		return err
	}
	if i.driver.tasks, err = schema.New(tasks.GetSpec()); err != nil {
		return fmt.Errorf("the config of tasks: %w", err)
	}
	answer, err := call(ctx, i, i.driver.client.Capabilities, "Capabilities", &pb.CapabilitiesRequest{})
	if err != nil {
		return err
	}
	if answer.GetCapabilities() == nil {
		return errors.New("the plugin has no capabilities")
	}
	i.driver.capabilities = fromCapabilities(answer.GetCapabilities(), i.calls.options.HostCgroup)
	return nil
}
