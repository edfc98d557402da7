package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "csi:", err)
		os.Exit(1)
	}
}

// options are the flags. doc.go explains them.
type options struct {
	kind     string
	endpoint string
	root     string
	nodeID   string
	name     string
	strict   string
	faults   string
	create   string
}

// The roles of a program.
const (
	nodeOnly       = "node"
	controllerOnly = "controller"
	monolith       = "monolith"
)

func parseOptions(args []string, output io.Writer) (options, error) {
	host, _ := os.Hostname() // without a name, -node-id is required
	var o options
	flags := flag.NewFlagSet("csi", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.StringVar(&o.kind, "type", monolith, "the `role`: node, controller or monolith")
	flags.StringVar(&o.endpoint, "endpoint", os.Getenv("CSI_ENDPOINT"), "the unix `socket`, a path or unix:// and a path; by default the value of CSI_ENDPOINT")
	flags.StringVar(&o.root, "root", "", "the `folder` of the volumes, an absolute path")
	flags.StringVar(&o.nodeID, "node-id", host, "the `id` of this node")
	flags.StringVar(&o.name, "name", "bind.csi.nodedrain", "the `name` of the plugin")
	flags.StringVar(&o.strict, "strict", "", "refuse calls that are out of order, and append all calls to this `file`")
	flags.StringVar(&o.faults, "faults", "", "delay or fail calls as this `file` states")
	flags.StringVar(&o.create, "create", "", "create these `volumes` at the start: names with commas between them")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.kind != nodeOnly && o.kind != controllerOnly && o.kind != monolith:
		return o, fmt.Errorf("-type is %q, and must be node, controller or monolith", o.kind)
	case o.endpoint == "":
		return o, errors.New("CSI_ENDPOINT and -endpoint are empty")
	case o.root == "":
		return o, errors.New("-root is required")
	case o.create != "" && o.kind == nodeOnly:
		return o, errors.New("-create is for controllers")
	}
	return o, checkNodeID(o.nodeID)
}

// run serves the plugin until the context ends. Mounts stay.
func run(ctx context.Context, args []string, output io.Writer) error {
	o, err := parseOptions(args, output)
	if err != nil {
		return err
	}
	server, err := newServer(o, slog.New(slog.NewJSONHandler(output, nil)))
	if err != nil {
		return err
	}
	listener, err := listen(o.endpoint)
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(stopped)
		timer := time.AfterFunc(grace, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	})
	err = server.Serve(listener)
	if !cancel() {
		<-stopped
	}
	return err
}

// grace is how long calls in flight may take when the program must exit.
const grace = 3 * time.Second

// newServer opens the store and returns a server with the services of a role.
func newServer(o options, logger *slog.Logger) (*grpc.Server, error) {
	s, err := openStore(o.root)
	if err != nil {
		return nil, err
	}
	g := &gate{store: s, faults: &faults{path: o.faults}, logger: logger, flights: map[string]context.Context{}}
	if o.strict != "" {
		if g.strict, err = openLog(o.strict); err != nil {
			return nil, fmt.Errorf("open the log of calls: %w", err)
		}
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, &identity{name: o.name})
	if o.kind != controllerOnly {
		if err := checkRights(s.root); err != nil {
			return nil, fmt.Errorf("-type %s cannot work here: %w", o.kind, err)
		}
		csi.RegisterNodeServer(server, &node{gate: g, id: o.nodeID})
	}
	if o.kind != nodeOnly {
		csi.RegisterControllerServer(server, &controller{gate: g})
	}
	return server, s.locked(func(s *state) error {
		for name := range strings.SplitSeq(o.create, ",") {
			if _, found := s.Volumes[name]; found || o.create == "" {
				continue
			}
			if err := checkVolumeID(name); err != nil {
				return err
			}
			if err := s.create(name, volume{}); err != nil {
				return err
			}
		}
		if o.kind == controllerOnly {
			return nil
		}
		return s.addNode(o.nodeID)
	})
}

func socketPath(endpoint string) (string, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix:"), "//")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("the endpoint %q is no absolute path of a unix socket", endpoint)
	}
	return path, nil
}

// listen listens on a socket that only this user may use. It replaces the socket of a dead process.
func listen(endpoint string) (net.Listener, error) {
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, err
	}
	if err := free(path); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove an old socket: %w", err)
		}
	}
	before := syscall.Umask(0o177)
	listener, err := net.Listen("unix", path)
	syscall.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}

// release is the time that a socket may need to be closed after its program was killed. A child
// that the program was starting holds the socket until it executes its own program.
const release = 5 * time.Second

// free returns an error if another program still listens on the socket after the time of release.
func free(path string) error {
	for end := time.Now().Add(release); ; time.Sleep(release / 100) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return nil // no program listens
		}
		_ = conn.Close()
		if time.Now().After(end) {
			return fmt.Errorf("another program listens on %s", path)
		}
	}
}
