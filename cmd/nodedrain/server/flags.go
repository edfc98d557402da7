package server

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// Flags are the flags of "nodedrain server".
type Flags struct {
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

	drainer drainer.NodeDrainerConfig

	logLevel string
	logJSON  bool
}

// Set returns the set of the flags.
func (f *Flags) Set() *flag.FlagSet {
	set := flag.NewFlagSet("server", flag.ContinueOnError)
	set.StringVar(&f.name, "name", "", "")
	set.StringVar(&f.dataDir, "data-dir", "", "")
	set.StringVar(&f.http, "http", agent.DefaultHTTPAddr, "")
	set.StringVar(&f.bind, "bind", agent.DefaultServerAddr, "")
	set.StringVar(&f.advertise, "advertise", "", "")
	set.IntVar(&f.expect, "bootstrap-expect", 0, "")
	set.Var(&f.join, "join", "")
	set.Var(&f.hosts, "allow-host", "")
	set.BoolVar(&f.leave, "leave", false, "")
	set.StringVar(&f.tokens, "tokens", "", "")
	set.StringVar(&f.ca, "ca", "", "")
	set.StringVar(&f.cert, "cert", "", "")
	set.StringVar(&f.key, "key", "", "")
	set.StringVar(&f.peerSecret, "peer-secret-file", "", "")
	set.StringVar(&f.region, "region", agent.DefaultRegion, "")
	set.BoolVar(&f.insecure, "insecure", false, "")
	set.IntVar(&f.conns.All, "max-conns", 0, "")
	set.IntVar(&f.conns.PerAddress, "max-conns-per-address", 0, "")
	set.BoolVar(&f.pprof, "pprof", false, "")
	for _, k := range operatorKnobs(&f.drainer) {
		set.Func(knobPrefix+k.Name, "", k.Value.Set)
	}
	set.StringVar(&f.logLevel, "log-level", "info", "")
	set.BoolVar(&f.logJSON, "log-json", false, "")
	return set
}

// check refuses invalid combinations of flags.
func (f *Flags) check(given map[string]bool) error {
	switch {
	case given["bootstrap-expect"] && f.expect < 1:
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
	case f.dataDir == "":
		return errors.New("-data-dir is required: it holds the server's log; to try things, use \"nodedrain dev\"")
	}
	return nil
}

// logger returns a logger as the flags configure it.
func (f *Flags) logger(out io.Writer) (hclog.Logger, error) {
	level := hclog.LevelFromString(f.logLevel)
	if level == hclog.NoLevel {
		return nil, fmt.Errorf("-log-level is %q and must be trace, debug, info, warn, error or off", f.logLevel)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "nodedrain", Level: level, Output: out, JSONFormat: f.logJSON}), nil
}

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *Command) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *Command) AutocompleteFlags() complete.Flags {
	return cli.FlagPredictors(new(Flags).Set())
}
