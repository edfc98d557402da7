package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// connectFlags are the servers' addresses and the user's credentials. Flags win over the
// environment.
type connectFlags struct {
	config client.Config
	// colors has no effect: output has no colors.
	colors bool
}

func (f *connectFlags) options() Options {
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
func (c *Base) Connect(f *connectFlags) (*client.Client, error) {
	config, err := f.over(c.Getenv)
	if err != nil {
		return nil, err
	}
	config.Transport = c.Transport
	api, err := client.New(config)
	if err != nil {
		return nil, Errorf("Error initializing client: %v", err)
	}
	api.OnMove(func(m client.Move) {
		if m.From != m.To {
			fmt.Fprintln(c.Errs, movedText(m))
		}
	})
	client.OnRequest(api, func() (answered func()) { return c.StartWaiting(func() string { return AnAnswer(api) }).End })
	return api, nil
}

// movedText describes the change to another address. A first contact that fails has a reason, such as a wrong
// certificate, and so has an answer that cannot be decoded: nothing was lost.
func movedText(m client.Move) string {
	problem, to := "connection lost", hostOf(m.To)
	if answer, is := errors.AsType[*client.UndecodedError](m.Err); is {
		problem = fmt.Sprintf("%s answers with text that is not the expected JSON (%v)", hostOf(m.From), answer.Err)
	} else if m.First {
		reason := m.Err
		if request, is := errors.AsType[*url.Error](reason); is {
			reason = request.Err
		}
		problem = fmt.Sprintf("no connection to %s (%v)", hostOf(m.From), reason)
	}
	if m.From == m.To {
		to += " again"
	}
	return SingleLine(problem + ", trying " + to)
}

// hostOf returns a URL without its scheme.
func hostOf(address string) string {
	_, host, _ := strings.Cut(address, "://")
	return host
}

// over returns the environment's configuration, overridden by the flags.
func (f *connectFlags) over(getenv func(string) string) (client.Config, error) {
	config, err := client.FromEnv(getenv)
	if err != nil {
		return config, Errorf("Error initializing client: %v", err)
	}
	flags, tls := f.config, f.config.TLS
	if tls.CAPath != "" {
		config.TLS.CACert = "" // otherwise it would win over the flag
	}
	config.Address, config.Token = cmp.Or(flags.Address, config.Address), cmp.Or(flags.Token, config.Token)
	config.Region, config.Namespace = cmp.Or(flags.Region, config.Region), cmp.Or(flags.Namespace, config.Namespace)
	config.TLS = client.TLS{
		CACert: cmp.Or(tls.CACert, config.TLS.CACert), CAPath: cmp.Or(tls.CAPath, config.TLS.CAPath),
		ClientCert: cmp.Or(tls.ClientCert, config.TLS.ClientCert), ClientKey: cmp.Or(tls.ClientKey, config.TLS.ClientKey),
		ServerName: cmp.Or(tls.ServerName, config.TLS.ServerName), SkipVerify: tls.SkipVerify || config.TLS.SkipVerify,
	}
	return config, nil
}
