package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/access"
	"github.com/seed-f9cf0b39/nodedrain/agent"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/telemetry"
)

// serverCommand is "nodedrain server".
type serverCommand struct{ operatorCommand }

func (c *serverCommand) Synopsis() string { return "Run a server" }

func (c *serverCommand) Help() string {
	return strings.TrimSpace(fmt.Sprintf(`
Usage: nodedrain server -dev [options]
       nodedrain server -data-dir DIR -bootstrap-expect N [-join ADDRESS]... [options]
       nodedrain server -data-dir DIR -join ADDRESS... [options]

  Runs one server of a cluster: raft, the state, a scheduler, the drainer, and the HTTP
  API that the other commands ask. The first form is a cluster alone, in memory, with
  simulated clients and some jobs, to try things with. The second is one of N servers
  that make a new cluster once they have found each other; the third joins a cluster
  that runs. A server that has been in a cluster finds it again by itself.

  SIGINT and SIGTERM end it in good order, a second one at once. SIGHUP has it read its
  tokens and certificates again.

  A server that meets a raft entry or a snapshot that it must not apply, as after a
  downgrade, says which, and ends with exit code %d. Its data is intact. It would end so
  again: start a newer build instead.

Options:

  -dev              A cluster alone and in memory.
  -clients N        Its simulated clients. Default: %d.

  -name NAME        The server's name among the others, for good. Default: drawn, and
                    kept in the data directory.
  -data-dir DIR     Where it keeps its log and snapshots.
  -http ADDRESS     Where the HTTP API listens. Default: %s.
  -bind ADDRESS     Where the server listens for the others. Default: %s.
  -advertise ADDRESS
                    Where the others reach it. Default: that of -bind.
  -bootstrap-expect N
                    How many servers make a new cluster. It means nothing to one that
                    is in a cluster already.
  -join ADDRESS     Where another server listens for the others; as often as needed.
  -leave            Leave the cluster when ended. Without it the others expect the
                    server back.

  -tokens FILE      Who may do what; see "nodedrain token create". Without it everybody
                    may do everything.
  -cert FILE, -key FILE
                    The server's certificate and its key: the HTTP API is HTTPS then.
  -ca FILE          Certificates of the authorities: then servers speak TLS with each
                    other, and clients must show a certificate too.
  -region NAME      What servers' certificates are named after. Default: %s.
  -insecure         Listen beyond this machine although nothing keeps strangers out.

  -log-level LEVEL  trace, debug, info, warn, error or off. Default: info.
  -log-json         Log in JSON.
`, int(exitRefused), agent.DefaultDevClients, agent.DefaultHTTPAddr, agent.DefaultServerAddr, agent.DefaultRegion))
}

func (c *serverCommand) Run(args []string) int { return c.exit(c.run(args)) }

func (c *serverCommand) run(args []string) (err error) {
	var f serverFlags
	set := f.set()
	about, err := arguments(set, "server", args)
	switch {
	case err != nil:
		return err
	case len(about) > 0:
		return fmt.Errorf("unexpected argument %q; \"nodedrain server -h\" lists the options", about[0])
	}
	if err := f.check(given(set)); err != nil {
		return err
	}
	logger, err := f.logger(c.errs)
	if err != nil {
		return err
	}
	s := &serving{logger: logger}
	if err := s.start(c.ctx, &f); errors.Is(err, cluster.ErrVersion) {
		return c.refuse(err)
	} else if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Server %s serves its API at %s\n", s.Name(), s.url)
	s.untilEnded(c.ctx)
	refused := s.Err()
	if err := s.stop(); err != nil {
		return fmt.Errorf("ending the server: %w", errors.Join(refused, err))
	}
	if refused != nil {
		return c.refuse(refused)
	}
	return nil
}

// exitRefused is the exit code of a server that met what it must not apply: the code of a
// wrong configuration in sysexits.h. A supervisor must not start the same build again.
const exitRefused exitCode = 78

func (c *serverCommand) refuse(err error) error {
	fmt.Fprintln(c.errs, err)
	return exitRefused
}

// serving is a server that runs.
type serving struct {
	*agent.Agent
	logger hclog.Logger
	// url is where the API is served.
	url string
	// tokens and certs are nil without any.
	tokens  *access.Tokens
	certs   *agent.Certs
	metrics *telemetry.Telemetry
	// stopAgent ends the agent, and what surrounds it.
	stopAgent func() error
}

// start starts what the flags say.
func (s *serving) start(ctx context.Context, f *serverFlags) error {
	config := agent.Config{
		Name: f.name, DataDir: f.dataDir, Logger: s.logger,
		HTTPAddr: f.http, ServerAddr: f.bind, Advertise: f.advertise, AllowInsecure: f.insecure,
		BootstrapExpect: f.expect, Join: f.join, LeaveOnStop: f.leave,
	}
	config.API.Region = f.region
	if err := s.secure(f, &config); err != nil {
		return err
	}
	var err error
	options := telemetry.Options{Logger: s.logger}
	if s.certs != nil {
		options.CertificateExpires = s.certs.Expires
	}
	if s.metrics, err = telemetry.New(options); err != nil {
		return err
	}
	config.Metrics = s.metrics
	if err := s.startAgent(ctx, f, config); err != nil {
		s.metrics.Close()
		return err
	}
	s.url = "http://" + s.HTTPAddr()
	if config.HTTPTLS != nil {
		s.url = "https://" + s.HTTPAddr()
	}
	return nil
}

// secure adds who may do what, and certificates.
func (s *serving) secure(f *serverFlags, config *agent.Config) (err error) {
	if f.tokens != "" {
		if s.tokens, err = access.Open(f.tokens, s.logger.Named("access")); err != nil {
			return err
		}
		config.Access = s.tokens
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

func (s *serving) startAgent(ctx context.Context, f *serverFlags, config agent.Config) error {
	if !f.dev {
		one, err := agent.New(config)
		if err != nil {
			return err
		}
		s.Agent, s.stopAgent = one, one.Stop
		return nil
	}
	clients := f.clients
	if clients == 0 {
		clients = -1 // none: zero is the default there
	}
	dev, err := agent.NewDev(ctx, agent.DevConfig{Agent: config, Clients: clients})
	if err != nil {
		return err
	}
	s.Agent, s.stopAgent = dev.Agent, dev.Stop
	return nil
}

// untilEnded returns when the context ends or the server fails. Until then every SIGHUP has
// tokens and certificates read again.
func (s *serving) untilEnded(ctx context.Context) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			if err := s.reload(); err != nil {
				s.logger.Error("what was in force stays in force", "error", err)
			}
		case <-s.Failed():
			return
		case <-ctx.Done():
			s.logger.Info("ending the server")
			return
		}
	}
}

// reload reads tokens and certificates again, each if it can.
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
	return s.stopAgent()
}
