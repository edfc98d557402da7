package client_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// environment is an environment of these variables alone.
func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// Each variable of the compatible command has the same meaning here.
func TestFromEnv(t *testing.T) {
	t.Parallel()
	got := result.Of(client.FromEnv(environment(map[string]string{
		"NOMAD_ADDR": "https://a:4646", "NOMAD_TOKEN": "secret", "NOMAD_REGION": "eu", "NOMAD_NAMESPACE": "web",
		"NOMAD_CACERT": "ca.pem", "NOMAD_CAPATH": "cas", "NOMAD_CLIENT_CERT": "c.pem", "NOMAD_CLIENT_KEY": "k.pem",
		"NOMAD_TLS_SERVER_NAME": "server", "NOMAD_SKIP_VERIFY": "true",
	}))).OK(t)
	must.Eq(t, client.Config{
		Address: "https://a:4646", Token: "secret", Region: "eu", Namespace: "web",
		TLS: client.TLS{CACert: "ca.pem", CAPath: "cas", ClientCert: "c.pem", ClientKey: "k.pem", ServerName: "server", SkipVerify: true},
	}, got)

	empty := result.Of(client.FromEnv(environment(nil))).OK(t)
	must.Eq(t, client.Config{}, empty)

	_, err := client.FromEnv(environment(map[string]string{"NOMAD_SKIP_VERIFY": "perhaps"}))
	must.EqError(t, err, `NOMAD_SKIP_VERIFY is "perhaps" and must be true or false`)
}

func TestNew_address(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                        "http://127.0.0.1:4646",
		"10.0.0.1:80":             "http://10.0.0.1:80",
		"localhost:4646":          "http://localhost:4646",
		"[::1]:4646":              "http://[::1]:4646",
		"https://a.example":       "https://a.example",
		"http://a.example/nomad/": "http://a.example/nomad",
		"a:1, https://b:2,":       "http://a:1",
		" , ":                     "http://127.0.0.1:4646",
	} {
		c := result.Of(client.New(client.Config{Address: address})).OK(t)
		must.Eq(t, want, c.Address())
	}
	for address, want := range map[string]string{
		"ftp://a":      "invalid address 'ftp://a': it must begin with http:// or https://",
		"http://":      "invalid address 'http://': it names no host",
		"http://a:b:c": "invalid address 'http://a:b:c': ",
		"a:1,ftp://b":  "invalid address 'ftp://b': it must begin with http:// or https://",
		"unix:///run":  "invalid address 'unix:///run': it must begin with http:// or https://",
	} {
		_, err := client.New(client.Config{Address: address})
		must.ErrorContains(t, err, want)
	}
}

// A server is trusted if an authority signed its certificate: one in the configured file or folder, or one of
// the system if neither is configured.
func TestNew_trust(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	file := filepath.Join(folder, "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.NoError(t, os.WriteFile(file, certificate, 0o600))

	nodes := func(trust client.TLS) error {
		c := result.Of(client.New(client.Config{Address: server.URL, TLS: trust})).OK(t)
		defer c.Close()
		_, _, err := c.Nodes(context.Background(), client.NodesQuery{})
		return err
	}
	must.NoError(t, nodes(client.TLS{CACert: file}))
	mixed := result.Of(client.New(client.Config{Address: "127.0.0.1:0," + server.URL, TLS: client.TLS{CACert: file}})).OK(t)
	t.Cleanup(mixed.Close)
	result.Read(mixed.Nodes(t.Context(), client.NodesQuery{})).OK(t)
	must.NoError(t, nodes(client.TLS{CAPath: folder}))
	must.NoError(t, nodes(client.TLS{SkipVerify: true}))
	must.NoError(t, nodes(client.TLS{CACert: file, ServerName: "example.com"}))
	must.ErrorContains(t, nodes(client.TLS{}), "certificate")
	must.ErrorContains(t, nodes(client.TLS{CACert: file, ServerName: "elsewhere.test"}), "elsewhere.test")
}

func TestNew_badFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "none.pem")
	must.NoError(t, os.WriteFile(file, []byte("no certificate"), 0o600))
	for name, test := range map[string]struct {
		tls  client.TLS
		want string
	}{
		"no such file":       {client.TLS{CACert: filepath.Join(folder, "missing")}, "reading the CA certificates"},
		"no certificate":     {client.TLS{CACert: file}, "no certificate is in"},
		"no such folder":     {client.TLS{CAPath: filepath.Join(folder, "missing")}, "reading the CA certificates"},
		"empty folder":       {client.TLS{CAPath: t.TempDir()}, "no file is in"},
		"key alone":          {client.TLS{ClientKey: file}, "needs its key"},
		"certificate alone":  {client.TLS{ClientCert: file}, "needs its key"},
		"broken certificate": {client.TLS{ClientCert: file, ClientKey: file}, "loading the client certificate"},
	} {
		_, err := client.New(client.Config{Address: "https://a", TLS: test.tls})
		must.ErrorContains(t, err, test.want, must.Sprint(name))
	}
}
