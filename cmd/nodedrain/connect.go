package main

import (
	"flag"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// connectFlags are the flags that say which server to ask, and who asks. They win over
// the environment.
type connectFlags struct {
	config     client.Config
	skipVerify bool
}

func (f *connectFlags) set(set *flag.FlagSet) {
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

// connectHelp are the options of [connectFlags], for the help of each command.
const connectHelp = `
General options:

  -address URL      Any server's API. Default: NOMAD_ADDR, or http://127.0.0.1:4646.
  -token TOKEN      Who asks. Default: NOMAD_TOKEN.
  -region NAME      Sent along. Default: NOMAD_REGION.
  -namespace NAME   Sent along. Default: NOMAD_NAMESPACE.
  -ca-cert FILE     Certificates of the authorities to trust. Default: NOMAD_CACERT.
  -ca-path DIR      A folder of such files. Default: NOMAD_CAPATH.
  -client-cert FILE
  -client-key FILE  The certificate that says who asks, and its key. Default:
                    NOMAD_CLIENT_CERT and NOMAD_CLIENT_KEY.
  -tls-server-name NAME
                    The name the server's certificate must hold. Default:
                    NOMAD_TLS_SERVER_NAME.
  -tls-skip-verify  Trust any server. Default: NOMAD_SKIP_VERIFY.
  -no-color, -force-color
                    Taken for the sake of scripts: nothing is coloured.
`

// connect returns a client as the flags say, and the environment where they say nothing.
func (c *operatorCommand) connect(f *connectFlags) (*client.Client, error) {
	config, err := f.over(c.getenv)
	if err != nil {
		return nil, err
	}
	asked, err := client.New(config)
	if err != nil {
		return nil, saidf("Error initializing client: %v", err)
	}
	return asked, nil
}

// over is the environment's configuration with what the flags say over it.
func (f *connectFlags) over(getenv func(string) string) (client.Config, error) {
	config, err := client.FromEnv(getenv)
	if err != nil {
		return config, saidf("Error initializing client: %v", err)
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
		config.TLS.CACert = "" // the environment's, which would win
	}
	config.TLS.SkipVerify = config.TLS.SkipVerify || f.skipVerify
	return config, nil
}
