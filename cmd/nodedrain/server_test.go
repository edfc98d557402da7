package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
)

// Invalid flags are refused, and no server starts.
func TestServer_mistakes(t *testing.T) {
	t.Parallel()
	clitest.Run(command).Refuses(t, [][2]string{
		{"server", "-data-dir is required: it holds the server's log"},
		{"server -colour", "flag provided but not defined: -colour"},
		{"server -data-dir x -bootstrap-expect 0", "-bootstrap-expect is 0 and must be above 0"},
		{"server -data-dir x -data-copies 0", "-data-copies is 0 and must be above 0"},
		{"server -data-dir x -data-rate 0", "-data-rate is 0 and must be between 1 and 1048576"},
		{"server -data-dir x -data-rate 9999999999", "-data-rate is 9999999999 and must be between 1 and 1048576"},
		{"server -data-dir x -join a:1,,b:2", `"a:1,,b:2" has an empty item`},
		{"server -data-dir x -cert c", "-cert and -key must be given together"},
		{"server -data-dir x -ca c", "-ca needs -cert and -key"},
		{"server -data-dir x -ca c -cert c -key c -peer-secret-file s", "-ca and -peer-secret-file are mutually exclusive"},
		{"server -data-dir x -peer-secret-file testdata/none", "reading the peer secret: open testdata/none"},
		{"server -data-dir x -join 127.0.0.1:1", "this server has peers, but neither certificates for servers nor a peer secret"},
		{"server -data-dir x -join 127.0.0.1:1", "give every server -ca, -cert and -key"},
		{"server -data-dir x -bootstrap-expect 3", "give every server the same -peer-secret-file"},
		{"server -data-dir x -bind 10.0.0.1:1 -insecure", "10.0.0.1:1 is not a loopback address"},
		{"server -data-dir x -advertise 10.0.0.1:1", "give every server -ca, -cert and -key"},
		{"server -data-dir x -log-level loud", `-log-level is "loud" and must be trace, debug, info, warn, error or off`},
		{"server -data-dir x -tokens testdata/none", "tokens file testdata/none"},
		{"server -data-dir x -cert testdata/none -key testdata/none", "testdata/none"},
		{"server -data-dir x -http nowhere", "-http: address nowhere: missing port in address"},
		{"server -data-dir x -http 0.0.0.0:0", "every host could drain nodes at 0.0.0.0:0"},
	})
}

// serve runs a server until the test's function returns, and returns its exit code.
func serve(t *testing.T, line string, use func(context.Context, *client.Client) error) (code int, errs string) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), scriptPatience)
	defer end()
	out := &watching{words: "serves its API at http"}
	used := make(chan error, 1)
	out.do = func() {
		_, url, _ := strings.Cut(strings.TrimSpace(out.String()), " serves its API at ")
		go func() {
			defer end()
			c, err := client.New(client.Config{Address: url, TLS: client.TLS{SkipVerify: true}})
			if err == nil {
				defer c.Close()
				err = use(ctx, c)
			}
			used <- err
		}()
	}
	var stderr strings.Builder
	code = run(ctx, strings.Fields("server -http 127.0.0.1:0 -bind 127.0.0.1:0 -log-level error "+line), cli.Stdio{
		In: strings.NewReader(""), Out: out, Errs: &stderr, Getenv: func(string) string { return "" },
	})
	must.StrContains(t, out.String(), out.words, must.Sprint(stderr.String()))
	must.NoError(t, <-used)
	return code, stderr.String()
}

// With a certificate a server speaks HTTPS to clients that trust it.
func TestServer_https(t *testing.T) {
	t.Parallel()
	cert, key := selfSigned(t)
	var trusting, doubting string
	code, errs := serve(t, "-data-dir "+filepath.Join(t.TempDir(), "data")+" -bootstrap-expect 1 -cert "+cert+" -key "+key, func(ctx context.Context, c *client.Client) error {
		if _, err := awaitLeader(ctx, c); err != nil {
			return err
		}
		var trustingCode, doubtingCode int
		trustingCode, _, trusting = command(ctx, "node status -address "+c.Address()+" -ca-cert "+cert)
		doubtingCode, _, doubting = command(ctx, "node status -address "+c.Address())
		if trustingCode != 0 || doubtingCode != 1 {
			return fmt.Errorf("exit codes are %d and %d", trustingCode, doubtingCode)
		}
		return nil
	})
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, "", trusting)
	must.StrContains(t, doubting, "certificate signed by unknown authority")
}

// selfSigned writes a certificate for this machine, and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	pair := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	must.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// awaitLeader waits until the only server of a cluster is its leader, and returns its name.
func awaitLeader(ctx context.Context, c *client.Client) (name string, err error) {
	for {
		servers, err := c.Servers().RaftConfiguration(ctx)
		if err == nil && len(servers.Servers) == 1 && servers.Servers[0].Leader {
			return servers.Servers[0].ID, nil
		}
		if !cli.Pause(ctx, 10*time.Millisecond) {
			return "", err
		}
	}
}

// A restarted server keeps its name and its data.
func TestServer_again(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	var names []string
	for _, line := range []string{"-bootstrap-expect 1 -data-dir " + dir, "-data-dir " + dir} {
		code, errs := serve(t, line, func(ctx context.Context, c *client.Client) error {
			name, err := awaitLeader(ctx, c)
			names = append(names, name)
			return err
		})
		must.Zero(t, code, must.Sprint(errs))
	}
	must.SliceLen(t, 2, names)
	must.Eq(t, names[0], names[1])
}

// Servers of one machine form a cluster with a secret in a file. Without it, one of them does not start
// again: the message names the flags, and the data stays as it is.
func TestServer_peerSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600))
	peer, err := agent.ReadPeerSecret(secret)
	must.NoError(t, err)
	other, err := agent.New(agent.Config{Name: "s1", BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", PeerSecret: peer})
	must.NoError(t, err)
	t.Cleanup(func() { _ = other.Stop() })
	must.NoError(t, other.Ready(t.Context()))
	line := "-data-dir " + filepath.Join(dir, "data")
	code, errs := serve(t, line+" -peer-secret-file "+secret+" -join "+other.ServerAddr(), func(ctx context.Context, c *client.Client) error {
		for {
			servers, err := c.Servers().RaftConfiguration(ctx)
			if err == nil && len(servers.Servers) == 2 {
				return nil
			}
			if !cli.Pause(ctx, 10*time.Millisecond) {
				return err
			}
		}
	})
	must.Zero(t, code, must.Sprint(errs))

	code, _, errs = command(t.Context(), "server -http 127.0.0.1:0 -bind 127.0.0.1:0 -log-level off "+line)
	must.Eq(t, 1, code)
	must.StrContains(t, errs, "the data directory is of a cluster with server s1 at "+other.ServerAddr())
	must.StrContains(t, errs, "-peer-secret-file")
}
