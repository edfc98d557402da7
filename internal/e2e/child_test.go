package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// childVariable is set in the environment of a process that runs as a server.
const childVariable = "NODEDRAIN_E2E_SERVER"

// childConfig is the configuration of such a process, as JSON.
type childConfig struct {
	Name, DataDir, ServerAddr, HTTPAddr string
	Join                                []string
	// CutFile holds the server address of the one that is cut off from the others, or
	// nothing.
	CutFile string
	// TTL is the shortest time in which a client must send its next heartbeat.
	TTL time.Duration
	// Secret is the peer secret, or empty. Otherwise CA, Cert and Key are files of certificates, or empty.
	// An old build reads the certificates only.
	Secret        string
	CA, Cert, Key string
}

// TestMain runs a server process or a task, or the tests. They take more than a minute: they wait for elections,
// kill timeouts and heartbeats of real processes, which do not become shorter on a fast machine. At the end it
// compares the values of enums that occurred.
func TestMain(m *testing.M) {
	for variable, run := range map[string]func(string) error{childVariable: serve, listenVariable: answer, webVariable: web} {
		config := os.Getenv(variable)
		if config == "" {
			continue
		}
		if err := run(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	freshmachine.Enter()
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "-test.parallel") }) {
		// Tests of this package wait for processes and timers. Two at a time leave two processors idle.
		_ = flag.Set("test.parallel", "5") // the flag exists
	}
	end := beginCollection()
	code := m.Run()
	os.Exit(max(code, end(code == 0)))
}

// serve is a server process. It runs until a signal stops it.
func serve(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("%s: %w", childVariable, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := hclog.New(&hclog.LoggerOptions{Name: c.Name, Level: hclog.Info, Output: os.Stderr})
	counted, err := telemetry.New(telemetry.Options{Logger: logger, QueueSize: 1 << 16})
	if err != nil {
		return err
	}
	defer counted.Close()
	scissors := &scissors{self: c.ServerAddr, file: c.CutFile}
	go scissors.watch(ctx)

	var running atomic.Pointer[agent.Agent] // nil until the agent has started, which answers before
	settings := agent.Config{
		Name: c.Name, DataDir: c.DataDir, ServerAddr: c.ServerAddr, HTTPAddr: c.HTTPAddr, Join: c.Join, BootstrapExpect: len(c.Join),
		Logger: logger, Raft: childRaft(), Heartbeats: heartbeat.Options{MinTTL: c.TTL, Grace: c.TTL, MaxRate: 1000},
		Dial:    scissors.dial,
		Collect: collect.Options{Interval: time.Second, AllocAge: time.Second, EvalAge: time.Second}, // while servers are in trouble
		OnApply: func(applied shims.Applied) { counted.OnApply(applied) },
		Around: func(api http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", api)
			inside := func(path string, answer func(*agent.Agent, http.ResponseWriter)) {
				mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
					if a := running.Load(); a != nil {
						answer(a, w)
						return
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				})
			}
			inside("/e2e/state", func(a *agent.Agent, w http.ResponseWriter) {
				state := a.Server().Store().Snapshot()
				w.Header().Set("X-Index", fmt.Sprint(state.Index()))
				_ = statestore.Dump(w, state) // the reader detects that it ends early
			})
			inside("/e2e/raft", func(a *agent.Agent, w http.ResponseWriter) {
				_ = json.NewEncoder(w).Encode(a.Server().Raft().Stats()) // an answer that is cut off is no JSON
			})
			return mux
		},
	}
	settings.API.Observe, settings.API.Metrics = counted.Request, counted
	settings.API.MaxBlocking, settings.API.MaxBlockingPerClient = 2000, 2000 // they are all ours
	settings.Drainer.OnStep = counted.Stepped
	if c.Secret != "" {
		if settings.PeerSecret, err = agent.NewPeerSecret(c.Secret); err != nil {
			return err
		}
	}
	if c.CA != "" {
		certs, err := agent.OpenCerts(agent.CertConfig{CA: c.CA, Certificate: c.Cert, Key: c.Key})
		if err != nil {
			return err
		}
		settings.ServerTLS = certs.Peers()
	}
	a, err := agent.New(settings)
	if err != nil {
		return err
	}
	running.Store(a)
	counted.Watch(telemetry.Sources{Drains: a.Server().Drainer().Status, Raft: a.Server().Raft()})
	select {
	case <-ctx.Done():
	case <-a.Failed():
	}
	return errors.Join(a.Err(), a.Stop())
}

// childRaft elects soon: the machine that tests run on may be busy, though.
func childRaft() *raft.Config {
	c := raft.DefaultConfig()
	c.BatchApplyCh = true
	c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = 500, 200, 5*time.Second
	return c
}

// scissors cut a server off from its peers: they close the connections that it has made
// and make no others, on both sides of the cut.
type scissors struct {
	self, file string

	mu   sync.Mutex
	cut  string              // the server that is cut off, or empty; guarded by mu
	open map[net.Conn]string // where the connections lead; guarded by mu
}

// watch reads the file until the context ends.
func (s *scissors) watch(ctx context.Context) {
	for ctx.Err() == nil {
		data, _ := os.ReadFile(s.file) // without the file no server is cut off
		s.set(strings.TrimSpace(string(data)))
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *scissors) set(cut string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
	for conn, to := range s.open { // in any order: all that lead across are closed
		if s.across(to) {
			_ = conn.Close()
			delete(s.open, conn)
		}
	}
}

// across reports whether an address lies on the other side of the cut. Called with mu.
func (s *scissors) across(to string) bool {
	return s.cut != "" && to != s.self && (s.cut == to || s.cut == s.self)
}

// dial is an agent's Dial.
func (s *scissors) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.across(address) {
		_ = conn.Close()
		return nil, fmt.Errorf("%s is cut off", address)
	}
	if s.open == nil {
		s.open = map[net.Conn]string{}
	}
	s.open[conn] = address
	return conn, nil
}
