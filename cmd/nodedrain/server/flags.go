package server

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/knob"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// flags are the flags of "nodedrain server".
type flags struct {
	name, dataDir         string
	http, bind, advertise string
	expect                int
	join, hosts           cli.ListFlag
	leave                 bool

	tokens, ca, cert, key, region string
	peerSecret                    string
	insecure                      bool

	conns connlimit.Limits
	pprof bool
	// dataCopies and dataRate bound the copies of data. The rate is in MiB per second.
	dataCopies, dataRate int

	drainer drainer.NodeDrainerConfig

	logLevel string
	logJSON  bool
}

// maxDataRate is the largest -data-rate.
const maxDataRate = 1 << 20

// newFlags returns the defaults.
func newFlags() *flags {
	return &flags{
		http: agent.DefaultHTTPAddr, bind: agent.DefaultServerAddr, region: agent.DefaultRegion, logLevel: "info",
		dataCopies: httpapi.DefaultMaxDataCopies, dataRate: httpapi.DefaultDataRate >> 20,
	}
}

func (f *flags) options() cli.Options {
	return slices.Concat(cli.Options{
		cli.Flag(&f.name, "name NAME", "The server's name in the cluster. It must never change. Default: random, kept in the data directory."),
		cli.Flag(&f.dataDir, "data-dir DIR", "Directory of the log and the snapshots. It must belong to the user of the server, and no other user may write to it or replace it."),
		cli.Flag(&f.http, "http ADDRESS", "Address on which the HTTP API listens."),
		cli.Value(f.hosts.Set, "allow-host NAME", "Name with a dot by which clients reach the HTTP API. Needed without -tokens and -cert. May be repeated."),
		cli.Flag(&f.bind, "bind ADDRESS", "Address on which the server listens for other servers, with -ca or -peer-secret-file. "+
			"Without them it does not listen, and is the only server of its cluster."),
		cli.Flag(&f.advertise, "advertise ADDRESS", "Address at which other servers reach this one. Default: that of -bind."),
		cli.Flag(&f.expect, "bootstrap-expect N", "Number of servers that form a new cluster. A server that is already in a cluster ignores it."),
		cli.Value(f.join.Set, "join ADDRESS", "Address on which another server listens for servers. May be repeated."),
		cli.Flag(&f.leave, "leave", "Leave the cluster on shutdown. Without it the other servers expect this one to return."),
		cli.Heading(""),
		cli.Flag(&f.tokens, "tokens FILE", `File of tokens and their rights; see "nodedrain token create". Without it every user may read and change everything.`),
		cli.Flag(&f.cert, "cert FILE", "The server's certificate. With it the HTTP API uses HTTPS."),
		cli.Flag(&f.key, "key FILE", "The key of the certificate."),
		cli.Flag(&f.ca, "ca FILE", "CA certificates. With them the servers use TLS between each other, and clients must also present a certificate."),
		cli.Flag(&f.peerSecret, "peer-secret-file FILE", "File with the secret by which servers authenticate each other without -ca. All of them must run on this machine, "+
			"use loopback addresses and have the same secret. The file belongs to the user of the server and has the mode 0600. "+
			"Create it with: \n(umask 077; openssl rand -hex 32 > FILE)"),
		cli.Flag(&f.region, "region NAME", "Region in the names of servers' certificates."),
		cli.Flag(&f.insecure, "insecure", "Allow unauthenticated access to the HTTP API from other machines."),
		cli.Heading(""),
		cli.Flag(&f.conns.All, "max-conns N", fmt.Sprintf("Maximum of connections to the HTTP API. Default: a quarter of the files that the process may have open, "+
			"%d at most. At the limit the server closes the connection that is idle for the longest time.", connlimit.MaxDefault)),
		cli.Flag(&f.conns.PerAddress, "max-conns-per-address N", "Maximum of connections of one remote address. Default: half of -max-conns."),
		cli.Flag(&f.dataCopies, "data-copies N", "Maximum of copies of ephemeral disks that run at a time through this server. More wait for their turn."),
		cli.Flag(&f.dataRate, "data-rate MIB", "Maximum of MiB per second of all these copies together."),
		cli.Flag(&f.pprof, "pprof", "Let users with the right write take profiles of the process at /v1/agent/pprof/."),
		cli.Heading("Options of the drainer, the same on all servers"),
	}, knobOptions(&f.drainer), cli.Options{
		cli.Heading("Options of the log"),
		cli.Flag(&f.logLevel, "log-level LEVEL", "trace, debug, info, warn, error or off."),
		cli.Flag(&f.logJSON, "log-json", "Log in JSON."),
	})
}

// check refuses invalid combinations of flags.
func (f *flags) check(c *cli.Call) error {
	switch {
	case c.Set("bootstrap-expect") && f.expect < 1:
		return fmt.Errorf("-bootstrap-expect is %d and must be above 0", f.expect)
	case (f.cert == "") != (f.key == ""):
		return errors.New("-cert and -key must be given together")
	case f.ca != "" && f.cert == "":
		return errors.New("-ca needs -cert and -key: servers authenticate each other")
	case f.ca != "" && f.peerSecret != "":
		return errors.New("-ca and -peer-secret-file are mutually exclusive: with -ca the servers authenticate each other by certificates")
	case f.conns.All < 0:
		return fmt.Errorf("-max-conns is %d and must not be below 0", f.conns.All)
	case f.conns.PerAddress < 0:
		return fmt.Errorf("-max-conns-per-address is %d and must not be below 0", f.conns.PerAddress)
	case f.dataCopies < 1:
		return fmt.Errorf("-data-copies is %d and must be above 0", f.dataCopies)
	case f.dataRate < 1 || f.dataRate > maxDataRate:
		return fmt.Errorf("-data-rate is %d and must be between 1 and %d", f.dataRate, maxDataRate)
	case f.dataDir == "":
		return errors.New("-data-dir is required: it holds the server's log; to try things, use \"nodedrain dev\"")
	}
	return nil
}

// logger returns a logger as the flags configure it.
func (f *flags) logger(out io.Writer) (hclog.Logger, error) {
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return nil, fmt.Errorf("-log-level is %q and must be trace, debug, info, warn, error or off", f.logLevel)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "nodedrain", Level: level, Output: out, JSONFormat: f.logJSON}), nil
}

// knobPrefix begins the name of each flag of a knob of the drainer.
const knobPrefix = "drain-"

// operatorKnobs returns the knobs of a configuration that have flags.
func operatorKnobs(c *drainer.NodeDrainerConfig) (knobs knob.List) {
	for _, k := range c.Knobs() {
		if k.Operator {
			knobs = append(knobs, k)
		}
	}
	return knobs
}

// knobOptions returns the flags of knobs.
func knobOptions(c *drainer.NodeDrainerConfig) (options cli.Options) {
	for _, k := range operatorKnobs(c) {
		text := fmt.Sprintf("%s It must be %s. Default: %s.", k.Text, k.Value.Bounds(), k.Value.Default())
		options = append(options, cli.Value(k.Value.Set, knobPrefix+k.Name+" VALUE", text))
	}
	return options
}
