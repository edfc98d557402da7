package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	pluginrunner "github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/seed-f9cf0b39/nodedrain/plugin"
	"github.com/seed-f9cf0b39/nodedrain/plugin/internal/cstring"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// ErrRunning means that the process of the last generation has not ended.
var ErrRunning = errors.New("the last generation of the plugin has not ended")

// ErrNoHandshake means that the program of a plugin did not begin as a plugin does.
var ErrNoHandshake = errors.New("no handshake")

// ErrConfig means that the config of a plugin does not fit its schema, or that the plugin refuses it.
var ErrConfig = errors.New("the plugin's own config")

// maxMessage is the largest message of a plugin, in bytes.
const maxMessage = 64 << 20

// Record identifies the process of a generation, for the next client. The zero value means that
// there is none. Later versions may add fields: a client ignores unknown fields.
type Record struct {
	Process process.Identity `json:"process"`
	Socket  string           `json:"socket"`
	// Digest identifies the program, its file, and the configuration of the process.
	Digest string `json:"digest"`
}

// Program is a plugin that can be launched. It is safe for concurrent use.
type Program struct {
	options Options

	mu         sync.Mutex
	generation uint64    // guarded by mu
	last       *Instance // guarded by mu; or nil
	launching  bool      // guarded by mu
}

// New returns a program. An error means that the options are wrong.
func New(o Options) (*Program, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Program{options: o}, nil
}

// Launch starts the next generation. It takes over the process of the record if possible. Otherwise
// it kills the process and starts the program. save must write the record of the new generation
// durably. Launch calls save before it configures a new process, and not for a process that it
// takes over.
//
// After an error no process is left, unless the error states it. The caller should retry with
// backoff. After ErrRunning it should wait for the end of the last instance, or kill it.
func (p *Program) Launch(ctx context.Context, last Record, save func(Record) error) (*Instance, error) {
	generation, err := p.begin()
	if err != nil {
		return nil, err
	}
	var begun *Instance // nil if no process was started, or if it has ended
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.launching, p.last = false, begun
	}()
	if err := prepareSockets(p.options.SocketDir); err != nil {
		return nil, err
	}
	if !last.Process.IsZero() {
		if begun, err = p.takeOver(ctx, generation, last); begun != nil || err != nil {
			return begun, err
		}
	}
	if err := sweep(ctx, p.options.SocketDir); err != nil {
		return nil, err
	}
	if begun, err = p.start(ctx, generation); err != nil {
		return nil, err
	}
	if err := begun.configure(ctx, save); err != nil {
		return nil, errors.Join(err, begun.Kill(ctx))
	}
	p.options.Logger.Info("started the plugin", "pid", begun.record.Process.PID, "name", begun.info.Name, "version", begun.info.Version)
	return begun, nil
}

// begin returns the number of the next generation.
func (p *Program) begin() (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.launching || p.last != nil && !p.last.calls.ended() {
		return 0, ErrRunning
	}
	p.launching = true
	p.generation++
	return p.generation, nil
}

// takeOver returns an instance for the process of a record. If the process cannot be used, or must be
// replaced, it has ended, and the instance is nil. An error means that it did not end.
func (p *Program) takeOver(ctx context.Context, generation uint64, last Record) (*Instance, error) {
	logger := p.options.Logger.With("pid", last.Process.PID)
	running, err := process.Open(last.Process)
	if errors.Is(err, process.ErrGone) {
		if generation == 1 {
			logger.Info("the plugin ended while no client ran")
		}
		removeSocket(ctx, last.Socket)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the earlier process of the plugin: %w", err)
	}
	digest, err := p.options.digest()
	if err == nil && digest == last.Digest {
		var instance *Instance
		if instance, err = p.attach(ctx, generation, last, running); err == nil {
			if instance.info.Type == Device {
				// It holds no task, and it may report its devices only once.
				logger.Info("the client restarts the device plugin", "name", instance.info.Name)
				return nil, p.shutDown(ctx, instance)
			}
			logger.Info("the client has taken over the plugin", "name", instance.info.Name, "version", instance.info.Version)
			return instance, nil
		}
		logger.Warn("the earlier process of the plugin cannot be used; the client kills it", "error", err)
		return nil, p.kill(ctx, last, running)
	}
	if err != nil {
		logger.Warn("the client ends the earlier process of the plugin, because the program cannot be started again", "error", err)
	} else {
		logger.Info("the client replaces the plugin: its program, configuration or environment has changed")
	}
	return nil, p.end(ctx, generation, last, running)
}

// End requests the process of a record to exit, and kills it if it does not. It returns nil if the process
// has ended. The caller must not launch the program at the same time.
func (p *Program) End(ctx context.Context, last Record) error {
	running, err := process.Open(last.Process)
	if errors.Is(err, process.ErrGone) {
		removeSocket(ctx, last.Socket)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the process of the plugin: %w", err)
	}
	return p.end(ctx, 0, last, running)
}

// end requests the process of a record to exit, kills it if it does not, and closes running.
func (p *Program) end(ctx context.Context, generation uint64, last Record, running *process.Process) error {
	attaching, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	instance, err := p.attach(attaching, generation, last, running)
	if err != nil {
		return p.kill(ctx, last, running)
	}
	return p.shutDown(ctx, instance)
}

// shutDown requests the process of an instance to exit, and kills it if it does not.
func (p *Program) shutDown(ctx context.Context, i *Instance) error {
	ending, stop := context.WithTimeout(ctx, 2*stopTimeout+p.options.CallTimeout)
	defer stop()
	return i.Shutdown(ending)
}

// kill kills the process of a record and closes running. A closed running means that the process has ended: an
// instance that was attached to it has closed it.
func (p *Program) kill(ctx context.Context, last Record, running *process.Process) error {
	ending, cancel := context.WithTimeout(ctx, p.options.CallTimeout)
	defer cancel()
	err := errors.Join(end(ending, running), running.Close())
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	removeSocket(ctx, last.Socket)
	return nil
}

// attach connects to a process. After an error the caller may kill the process.
func (p *Program) attach(ctx context.Context, generation uint64, last Record, running *process.Process) (*Instance, error) {
	answering, cancel := context.WithTimeout(ctx, p.options.CallTimeout)
	defer cancel()
	if err := checkListener(answering, last.Socket, last.Process.PID); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	a := &attached{process: running, ended: ended, cause: newCause(p.options.LogFile), socket: last.Socket}
	client := goplugin.NewClient(p.config(func(c *goplugin.ClientConfig) {
		c.Reattach = &goplugin.ReattachConfig{
			Protocol: goplugin.ProtocolGRPC, ProtocolVersion: plugin.ProtocolVersion,
			Addr:         &net.UnixAddr{Name: last.Socket, Net: "unix"},
			ReattachFunc: func() (pluginrunner.AttachedRunner, error) { return a, nil },
		}
	}))
	watching, stop := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		_ = running.Wait(watching)
	}()
	spare := context.AfterFunc(answering, func() { _ = a.Kill(answering) })
	// Plugins with an old go-plugin have their socket in another folder.
	dir := filepath.Dir(last.Socket)
	if filepath.Dir(dir) != p.options.SocketDir {
		dir = ""
	}
	instance, err := p.connect(generation, client, a, dir)
	if err != nil {
		stop()
		return nil, err
	}
	instance.record, instance.takenOver, instance.stopWatching = last, true, stop
	err = instance.identify(answering)
	if !spare() && err == nil {
		err = errors.New("it did not answer in time")
	}
	if err != nil {
		instance.Detach()
		return nil, err
	}
	return instance, nil
}

// start starts the process of a new generation and connects to it. After an error the process has
// ended, or the error names it.
func (p *Program) start(ctx context.Context, generation uint64) (*Instance, error) {
	starting, cancel := context.WithTimeout(ctx, p.options.HandshakeTimeout+p.options.CallTimeout)
	defer cancel()
	// Computed before the start: if the file changes meanwhile, the next client restarts the
	// plugin.
	digest, err := p.options.digest()
	if err != nil {
		return nil, err
	}
	r := &runner{options: p.options, starting: starting}
	var dir string
	client := goplugin.NewClient(p.config(func(c *goplugin.ClientConfig) {
		c.RunnerFunc = func(_ hclog.Logger, command *exec.Cmd, socketDir string) (pluginrunner.Runner, error) {
			dir, r.env = socketDir, append(slices.Clone(p.options.Env), command.Env...)
			return r, nil
		}
	}))
	_, err = client.Start()
	if r.process == nil {
		return nil, errors.Join(fmt.Errorf("the plugin did not start: %w", err), os.RemoveAll(dir))
	}
	shaken := err == nil
	if shaken {
		r.socket = client.ReattachConfig().Addr.String()
	}
	var instance *Instance
	if err == nil {
		instance, err = p.connect(generation, client, &r.attached, dir)
	}
	if err == nil {
		instance.record = Record{Process: r.process.Identity(), Socket: r.socket, Digest: digest}
		err = checkListener(starting, instance.record.Socket, instance.record.Process.PID)
	}
	if !r.spare() && err == nil {
		err = errors.New("it took too long")
	}
	if err == nil {
		return instance, nil
	}
	if instance == nil {
		instance = newInstance(p.options, generation, client, &r.attached, dir)
	}
	killed := instance.Kill(ctx)
	if shaken {
		err = fmt.Errorf("the plugin did not start: %s", plain(err.Error()))
	} else {
		err = fmt.Errorf("the plugin did not start: %w: %s", ErrNoHandshake, r.failed(err))
	}
	if last := r.cause.described(); last != "" {
		err = fmt.Errorf("%w; %s", err, last)
	}
	return nil, errors.Join(err, killed)
}

// config returns the configuration of a client of go-plugin.
func (p *Program) config(set func(*goplugin.ClientConfig)) *goplugin.ClientConfig {
	c := &goplugin.ClientConfig{
		HandshakeConfig:  plugin.Handshake(),
		Plugins:          goplugin.PluginSet{},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     p.options.HandshakeTimeout,
		Logger:           hclog.NewNullLogger(),
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: p.options.SocketDir},
		// The client stores handles as they are.
		GRPCDialOptions: append(cstring.DialOptions((&pb.TaskHandle{}).ProtoReflect().Descriptor().FullName()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage))),
	}
	set(c)
	return c
}

// connect returns an instance that is connected to its process. After an error the process still
// runs. The call returns when the process ends.
func (p *Program) connect(generation uint64, client *goplugin.Client, a *attached, dir string) (*Instance, error) {
	c, err := client.Client()
	if err != nil {
		return nil, err
	}
	g, ok := c.(*goplugin.GRPCClient)
	if !ok {
		return nil, fmt.Errorf("the protocol of the plugin is %T", c)
	}
	instance := newInstance(p.options, generation, client, a, dir)
	instance.connection = g.Conn
	instance.base = base.NewBasePluginClient(g.Conn)
	instance.driver.client = pb.NewDriverClient(g.Conn)
	instance.devices.client = devicepb.NewDevicePluginClient(g.Conn)
	return instance, nil
}
