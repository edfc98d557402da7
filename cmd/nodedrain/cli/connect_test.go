package cli

import (
	"flag"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// A flag overrides its environment variable, and no other.
func TestConnectFlags_over(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		client.EnvAddress: "http://env:1", client.EnvToken: "env", client.EnvCACert: "env.pem", client.EnvTLSServerName: "env",
	}
	over := func(line string) (client.Config, error) {
		var f connectFlags
		set := flag.NewFlagSet("", flag.ContinueOnError)
		f.options().Set(set)
		_, err := parseArguments(set, "", strings.Fields(line))
		must.NoError(t, err)
		return f.over(func(name string) string { return environment[name] })
	}
	got, err := over("")
	must.NoError(t, err)
	must.Eq(t, client.Config{Address: "http://env:1", Token: "env", TLS: client.TLS{CACert: "env.pem", ServerName: "env"}}, got)

	got, err = over("-address http://flag:2 --token=flag -region eu -namespace web -client-cert c -client-key k -tls-server-name flag -tls-skip-verify -no-color")
	must.NoError(t, err)
	must.Eq(t, client.Config{Address: "http://flag:2", Token: "flag", Region: "eu", Namespace: "web", TLS: client.TLS{
		CACert: "env.pem", ClientCert: "c", ClientKey: "k", ServerName: "flag", SkipVerify: true,
	}}, got)

	got, err = over("-ca-path flags")
	must.NoError(t, err)
	must.Eq(t, client.TLS{CAPath: "flags", ServerName: "env"}, got.TLS)
	got, err = over("-ca-path flags -ca-cert flag.pem")
	must.NoError(t, err)
	must.Eq(t, client.TLS{CAPath: "flags", CACert: "flag.pem", ServerName: "env"}, got.TLS)

	environment[client.EnvSkipVerify] = "perhaps"
	_, err = over("")
	must.EqError(t, err, `Error initializing client: NOMAD_SKIP_VERIFY is "perhaps" and must be true or false`)
}
