package cli

import (
	"flag"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// ConnectFlags are the servers' addresses and the user's credentials. Flags win over the
// environment.
type ConnectFlags struct {
	config     client.Config
	skipVerify bool
}

// Set declares the flags in a set.
func (f *ConnectFlags) Set(set *flag.FlagSet) {
	c := &f.config
	set.StringVar(&c.Address, "address", "", "")
	set.StringVar(&c.Token, "token", "", "")
	set.StringVar(&c.Region, "region", "", "")
	set.StringVar(&c.Namespace, "namespace", "", "")
	set.StringVar(&c.TLS.CACert, "ca-cert", "", "")
	set.StringVar(&c.TLS.CAPath, "ca-path", "", "")
	set.StringVar(&c.TLS.ClientCert, "client-cert", "", "")
	set.StringVar(&c.TLS.ClientKey, "client-key", "", "")
	set.StringVar(&c.TLS.ServerName, "tls-server-name", "", "")
	set.BoolVar(&f.skipVerify, "tls-skip-verify", false, "")
	set.Bool("no-color", false, "")
	set.Bool("force-color", false, "")
}

// ConnectHelp are the options of [connectFlags], for the help of each command.
const ConnectHelp = `
General options:

  -address URLS     The API of any server, or of several, separated by commas. If one does
                    not answer, the command uses the next. Default: NOMAD_ADDR, or
                    http://127.0.0.1:4646.
  -token TOKEN      Token that authenticates the request. Default: NOMAD_TOKEN.
  -region NAME      Region sent with the request. Default: NOMAD_REGION.
  -namespace NAME   Namespace sent with the request. Default: NOMAD_NAMESPACE.
  -ca-cert FILE     CA certificates to trust. Default: NOMAD_CACERT.
  -ca-path DIR      Folder of CA certificate files. Default: NOMAD_CAPATH.
  -client-cert FILE
  -client-key FILE  TLS certificate and key of the client. Default:
                    NOMAD_CLIENT_CERT and NOMAD_CLIENT_KEY.
  -tls-server-name NAME
                    Name that the server's certificate must contain. Default:
                    NOMAD_TLS_SERVER_NAME.
  -tls-skip-verify  Do not verify the server's certificate. Default:
                    NOMAD_SKIP_VERIFY.
  -no-color, -force-color
                    Accepted for compatibility. Output has no colors.
`

// Again returns the flags that name the same servers, for a command line that the user can repeat.
// It leaves the token out.
func (f *ConnectFlags) Again() string {
	if f.config.Address == "" {
		return ""
	}
	return " -address " + f.config.Address
}

// Connect returns a client configured by the flags, then by the environment.
func (c *Base) Connect(f *ConnectFlags) (*client.Client, error) {
	config, err := f.Over(c.Getenv)
	if err != nil {
		return nil, err
	}
	api, err := client.New(config)
	if err != nil {
		return nil, Errorf("Error initializing client: %v", err)
	}
	api.OnMove(func(m client.Move) {
		if m.From != m.To {
			fmt.Fprintln(c.Errs, movedText(m))
		}
	})
	return api, nil
}

// movedText describes the change to another address.
func movedText(m client.Move) string {
	if m.From == m.To {
		return fmt.Sprintf("connection lost, trying %s again", hostOf(m.To))
	}
	return fmt.Sprintf("connection lost, trying %s", hostOf(m.To))
}

// hostOf returns a URL without its scheme.
func hostOf(address string) string {
	_, host, _ := strings.Cut(address, "://")
	return host
}

// Over returns the environment's configuration, overridden by the flags.
func (f *ConnectFlags) Over(getenv func(string) string) (client.Config, error) {
	config, err := client.FromEnv(getenv)
	if err != nil {
		return config, Errorf("Error initializing client: %v", err)
	}
	given := &f.config
	for _, setting := range []struct{ to, from *string }{
		{&config.Address, &given.Address},
		{&config.Token, &given.Token},
		{&config.Region, &given.Region},
		{&config.Namespace, &given.Namespace},
		{&config.TLS.CACert, &given.TLS.CACert},
		{&config.TLS.CAPath, &given.TLS.CAPath},
		{&config.TLS.ClientCert, &given.TLS.ClientCert},
		{&config.TLS.ClientKey, &given.TLS.ClientKey},
		{&config.TLS.ServerName, &given.TLS.ServerName},
	} {
		if *setting.from != "" {
			*setting.to = *setting.from
		}
	}
	if given.TLS.CAPath != "" && given.TLS.CACert == "" {
		config.TLS.CACert = "" // otherwise the environment's CACert would win over the flag
	}
	config.TLS.SkipVerify = config.TLS.SkipVerify || f.skipVerify
	return config, nil
}
