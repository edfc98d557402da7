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
	config client.Config
	// colors is what the flags for colors set. It has no effect.
	colors bool
}

// Set declares the flags in a set.
func (f *ConnectFlags) Set(set *flag.FlagSet) { f.options().Set(set) }

// ConnectHelp returns the help of [ConnectFlags].
func ConnectHelp() string { return new(ConnectFlags).options().Help() }

func (f *ConnectFlags) options() Options {
	c := &f.config
	return Options{
		Heading("General options"),
		Flag(&c.Address, "address URLS", "The API of any server, or of several, separated by commas. If one does not answer, the command uses the next. Default: NOMAD_ADDR, or http://127.0.0.1:4646."),
		Flag(&c.Token, "token TOKEN", "Token that authenticates the request. Default: NOMAD_TOKEN."),
		Flag(&c.Region, "region NAME", "Region sent with the request. Default: NOMAD_REGION."),
		Flag(&c.Namespace, "namespace NAME", "Namespace sent with the request. Default: NOMAD_NAMESPACE."),
		Flag(&c.TLS.CACert, "ca-cert FILE", "CA certificates to trust. Default: NOMAD_CACERT."),
		Flag(&c.TLS.CAPath, "ca-path DIR", "Folder of CA certificate files. Default: NOMAD_CAPATH."),
		Flag(&c.TLS.ClientCert, "client-cert FILE", "TLS certificate of the client. Default: NOMAD_CLIENT_CERT."),
		Flag(&c.TLS.ClientKey, "client-key FILE", "TLS key of the client. Default: NOMAD_CLIENT_KEY."),
		Flag(&c.TLS.ServerName, "tls-server-name NAME", "Name that the server's certificate must contain. Default: NOMAD_TLS_SERVER_NAME."),
		Flag(&c.TLS.SkipVerify, "tls-skip-verify", "Do not verify the server's certificate. Default: NOMAD_SKIP_VERIFY."),
		Flag(&f.colors, "no-color", "Accepted for compatibility. Output has no colors."),
		Flag(&f.colors, "force-color", "Accepted for compatibility. Output has no colors."),
	}
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
	flags := f.config
	for _, setting := range []struct{ to, from *string }{
		{&config.Address, &flags.Address},
		{&config.Token, &flags.Token},
		{&config.Region, &flags.Region},
		{&config.Namespace, &flags.Namespace},
		{&config.TLS.CACert, &flags.TLS.CACert},
		{&config.TLS.CAPath, &flags.TLS.CAPath},
		{&config.TLS.ClientCert, &flags.TLS.ClientCert},
		{&config.TLS.ClientKey, &flags.TLS.ClientKey},
		{&config.TLS.ServerName, &flags.TLS.ServerName},
	} {
		if *setting.from != "" {
			*setting.to = *setting.from
		}
	}
	if flags.TLS.CAPath != "" && flags.TLS.CACert == "" {
		config.TLS.CACert = "" // otherwise the environment's CACert would win over the flag
	}
	config.TLS.SkipVerify = config.TLS.SkipVerify || flags.TLS.SkipVerify
	return config, nil
}
