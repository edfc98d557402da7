package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
)

// Command is "nodedrain server".
func Command() *cli.Command {
	f := newFlags()
	return &cli.Command{
		Short: "Run a server",
		Forms: []string{"-data-dir DIR -bootstrap-expect N [-join ADDRESS]... [options]", "-data-dir DIR -join ADDRESS... [options]"},
		Description: `
  Runs one server of a cluster: raft, the state store, a scheduler, the drainer, and the
  HTTP API that the other commands use. The first form runs one of N servers that form a
  new cluster when all have connected. The second form joins a running cluster. A
  restarted server returns to its cluster with either form.

  SIGINT and SIGTERM shut the server down. A second signal ends it at once. On SIGHUP the
  server reads its tokens and certificates again.

  If a server finds a raft entry or a snapshot that it cannot apply, as after a downgrade,
  it prints which one and exits with code 78. Its data is intact. A restart of the same
  build fails again: start a newer build instead.

  If the data directory is damaged, or the log or a snapshot is lost, the server prints
  the file and what to do, and exits with the same code. It must not vote without writes
  that it has acknowledged. See "nodedrain server recover -help".
`,
		Options: f.options(), Run: f.run,
	}
}

func (f *flags) run(c *cli.Call) error {
	if err := f.check(c); err != nil {
		return err
	}
	logger, err := f.logger(c.Errs)
	if err != nil {
		return err
	}
	s := &serving{logger: logger}
	switch err := s.start(f); {
	case errors.Is(err, cluster.ErrVersion), errors.Is(err, datadir.ErrUnsafe):
		return refuse(c, err)
	case errors.Is(err, agent.ErrPeerAccess):
		return fmt.Errorf("%w; %s", inFlags(err), peerAccessRemedy)
	case err != nil:
		return inFlags(err)
	}
	fmt.Fprintf(c.Out, "Server %s serves its API at %s\n", s.agent.Name(), s.url)
	s.untilEnded(c.Ctx)
	refused := s.agent.Err()
	if err := s.stop(); err != nil {
		return fmt.Errorf("shutting down: %w", errors.Join(refused, err))
	}
	if refused != nil {
		return refuse(c, refused)
	}
	return nil
}

// flagError is an error of the configuration in the words of the command line.
type flagError struct{ error }

// inFlags returns an error of the agent with the names of flags instead of those of the configuration's fields.
func inFlags(err error) error { return flagError{err} }

func (e flagError) Error() string {
	return strings.NewReplacer(
		"a Config.HTTPTLS that demands certificates", "-ca with -cert and -key", "Config.Access", "-tokens", "Config.AllowInsecure", "-insecure",
		"Config.HTTPAddr", "-http", "Config.ServerAddr", "-bind", "Config.Advertise", "-advertise", "Config.Name", "-name",
		"Config.BootstrapExpect", "-bootstrap-expect", "Config.Conns", "-max-conns",
	).Replace(strings.TrimPrefix(e.error.Error(), "agent: "))
}

func (e flagError) Unwrap() error { return e.error }

// peerAccessRemedy is what to do after [agent.ErrPeerAccess].
const peerAccessRemedy = "give every server -ca, -cert and -key, or, if all servers run on this machine at loopback addresses, " +
	"give every server the same -peer-secret-file; a server without them takes no -join, no -bootstrap-expect above 1 and no other address: " +
	"see \"Servers without certificates\" in docs/operators.md"

// ExitRefused is the exit code of a server that found an entry or a snapshot it must not
// apply, or that has lost a part of its data: the code of a wrong configuration in sysexits.h. A supervisor must not start the
// same build again.
const ExitRefused cli.ExitCode = 78

func refuse(c *cli.Call, err error) error {
	fmt.Fprintln(c.Errs, err)
	return ExitRefused
}

// serving is a running server.
type serving struct {
	agent  *agent.Agent
	logger hclog.Logger
	// url is the base URL of the API.
	url string
	// tokens and certs are nil if the flags name none.
	tokens  *access.Tokens
	certs   *agent.Certs
	metrics *telemetry.Telemetry
}

// start starts the server as the flags configure it.
func (s *serving) start(f *flags) error {
	config := agent.Config{
		Name: f.name, DataDir: f.dataDir, Logger: s.logger,
		HTTPAddr: f.http, ServerAddr: f.bind, Advertise: f.advertise, AllowInsecure: f.insecure,
		BootstrapExpect: f.expect, Join: f.join, LeaveOnStop: f.leave, Conns: f.conns, Drainer: f.drainer,
	}
	config.API.Region, config.API.Hosts, config.API.Profiles = f.region, f.hosts, f.pprof
	config.API.MaxDataCopies, config.API.DataRate = f.dataCopies, int64(f.dataRate)<<20
	config.API.Build = strings.TrimPrefix(cli.Version(), "nodedrain ")
	if err := s.secure(f, &config); err != nil {
		return err
	}
	var err error
	options := telemetry.Options{Logger: s.logger, Policy: f.drainer.Policy}
	if s.certs != nil {
		options.CertificateExpires = s.certs.Expires
	}
	if s.metrics, err = telemetry.New(options); err != nil {
		return err
	}
	config.Metrics = s.metrics
	if s.agent, err = agent.New(config); err != nil {
		s.metrics.Close()
		return err
	}
	s.url = "http://" + s.agent.HTTPAddr()
	if config.HTTPTLS != nil {
		s.url = "https://" + s.agent.HTTPAddr()
	}
	return nil
}

// secure adds tokens and certificates to the configuration.
func (s *serving) secure(f *flags, config *agent.Config) (err error) {
	if f.tokens != "" {
		if s.tokens, err = access.Open(f.tokens, s.logger.Named("access")); err != nil {
			return err
		}
		config.Access = s.tokens
	}
	if f.peerSecret != "" {
		if config.PeerSecret, err = agent.ReadPeerSecret(f.peerSecret); err != nil {
			return err
		}
	}
	if f.cert != "" {
		s.certs, err = agent.OpenCerts(agent.CertConfig{
			CA: f.ca, Certificate: f.cert, Key: f.key, Region: f.region, Logger: s.logger.Named("tls"),
		})
		if err != nil {
			return err
		}
		config.HTTPTLS, config.ServerTLS = s.certs.Public(), s.certs.Peers()
	}
	return nil
}

// untilEnded returns when the context ends or the server fails. Until then it reads tokens
// and certificates again on every SIGHUP.
func (s *serving) untilEnded(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			if err := s.reload(); err != nil {
				s.logger.Error("reload failed, the old tokens or certificates stay in force", "error", err)
			}
		case <-s.agent.Failed():
			return
		case <-ctx.Done():
			s.logger.Info("shutting down")
			return
		}
	}
}

// reload reads tokens and certificates again. A failure of one does not stop the other.
func (s *serving) reload() error {
	var errs []error
	if s.tokens != nil {
		errs = append(errs, s.tokens.Reload())
	}
	if s.certs != nil {
		errs = append(errs, s.certs.Reload())
	}
	return errors.Join(errs...)
}

func (s *serving) stop() error {
	defer s.metrics.Close()
	return s.agent.Stop()
}
