package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// A server reads its secret only from a file that no other user has a right to, and only a secret
// that is not short.
func TestReadPeerSecret(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct {
		text string
		mode fs.FileMode
		want string // in the error, or empty
	}{
		"a line":                {long + "\n", 0o600, ""},
		"no line end":           {long, 0o400, ""},
		"open to the group":     {long, 0o640, "its mode is 0640 and must be 0600"},
		"open to other users":   {long, 0o604, "its mode is 0604 and must be 0600"},
		"writable by the group": {long, 0o620, "its mode is 0620 and must be 0600"},
		"executable":            {long, 0o700, "its mode is -rwx------ and must be 0600"},
		"with a set-uid bit":    {long, 0o600 | fs.ModeSetuid, "its mode is urw------- and must be 0600"},
		"equal bytes":           {strings.Repeat("a", 64), 0o600, "has fewer than 8 different bytes"},
		"NULs":                  {strings.Repeat("\x00", 64), 0o600, "has fewer than 8 different bytes"},
		"seven different bytes": {strings.Repeat("0123456", 10), 0o600, "has fewer than 8 different bytes"},
		"eight different bytes": {strings.Repeat("01234567", 8), 0o600, ""},
		"empty":                 {"", 0o600, "it has 0 bytes"},
		"short":                 {long[:31] + strings.Repeat(" ", 40), 0o600, "has 31 bytes and must have at least 32"},
		"two lines":             {long + "\n" + long, 0o600, "must be one line"},
		"long":                  {strings.Repeat(long, 65), 0o600, "at most 4096 bytes"},
		"very long":             {strings.Repeat(long, 6500), 0o600, "at most 4096 bytes"},
	} {
		path := filepath.Join(t.TempDir(), "secret")
		must.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		must.NoError(t, os.Chmod(path, c.mode))
		secret, err := agent.ReadPeerSecret(path)
		if c.want == "" {
			must.NoError(t, err, must.Sprint(name))
			must.NotNil(t, secret)
			continue
		}
		must.ErrorContains(t, err, strings.TrimPrefix(c.want, "it "), must.Sprint(name))
		must.ErrorContains(t, err, path)
		must.StrNotContains(t, err.Error(), long[:16])
	}
	readPeerSecretLinks(t, long)
	_, err := agent.ReadPeerSecret(filepath.Join(t.TempDir(), "none"))
	must.ErrorIs(t, err, fs.ErrNotExist)
	_, err = agent.ReadPeerSecret(t.TempDir())
	must.ErrorContains(t, err, "not a regular file")
	fifo := filepath.Join(t.TempDir(), "fifo")
	must.NoError(t, syscall.Mkfifo(fifo, 0o600))
	_, err = agent.ReadPeerSecret(fifo)
	must.ErrorContains(t, err, "not a regular file", must.Sprint("a FIFO does not stop the start"))
	if os.Geteuid() == 0 {
		path := filepath.Join(t.TempDir(), "secret")
		must.NoError(t, os.WriteFile(path, []byte(long), 0o600))
		must.NoError(t, os.Chown(path, 65534, 65534))
		_, err = agent.ReadPeerSecret(path)
		must.ErrorContains(t, err, "belongs to another user")
	}
}

// readPeerSecretLinks checks that the file at the end of a link decides, not the link: Kubernetes
// mounts a secret as a link to a link.
func readPeerSecretLinks(t *testing.T, text string) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "..2026_01_01", "secret")
	must.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	must.NoError(t, os.WriteFile(file, []byte(text), 0o400))
	must.NoError(t, os.Symlink("..2026_01_01", filepath.Join(folder, "..data")))
	must.NoError(t, os.Symlink("..data/secret", filepath.Join(folder, "secret")))
	result.Of(agent.ReadPeerSecret(filepath.Join(folder, "secret"))).OK(t)
	must.NoError(t, os.Chmod(file, 0o440))
	_, err := agent.ReadPeerSecret(filepath.Join(folder, "secret"))
	must.ErrorContains(t, err, "its mode is 0440 and must be 0600")
}

// However a secret is printed, the output does not contain it.
func TestPeerSecret_isNotPrinted(t *testing.T) {
	t.Parallel()
	const text = "0123456789abcdef0123456789abcdef"
	secret := result.Of(agent.NewPeerSecret(text)).OK(t)
	type holder struct{ hidden *agent.PeerSecret }
	config := agent.Config{PeerSecret: secret}
	for _, v := range []any{secret, *secret, &secret, []*agent.PeerSecret{secret}, holder{secret}, &holder{secret}, config.PeerSecret} {
		var out bytes.Buffer
		hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true}).Info("here", "value", v)
		hclog.New(&hclog.LoggerOptions{Output: &out}).Info("here", "value", v)
		marshalled := result.Of(json.Marshal(v)).OK(t)
		out.Write(marshalled)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		must.StrNotContains(t, out.String(), text)
		must.StrNotContains(t, out.String(), fmt.Sprintf("%x", text))
	}
}

// rogue returns the TLS configuration of a program without the secret: it has a key of its own, and
// accepts every peer.
func rogue(t *testing.T) *tls.Config {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{agent.ServerName(agent.DefaultRegion)}}
	certificate := result.Of(x509.CreateCertificate(rand.Reader, template, template, public, private)).OK(t)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}},
		ClientAuth:   tls.RequireAnyClientCert, InsecureSkipVerify: true,
	}
}

// A local program without the secret gets nothing at the port of a server: no answer to a request of
// servers, no raft, no membership. The server that it connects to goes on.
func TestSecurity_RogueServer(t *testing.T) {
	t.Parallel()
	victim := start(t, agent.Config{Name: "victim", BootstrapExpect: 1})
	ready(t, victim)
	at := tcpAddr(t, victim.ServerAddr())
	other := result.Of(agent.NewPeerSecret("a secret that the rogue server has chosen itself")).OK(t)

	foreign := result.Of(other.DialTLS(at)).OK(t)
	anonymous := rogue(t)
	anonymous.Certificates = nil
	listens, err := agent.NewTestSecret().ListenTLS(at) // the role of the other side
	must.NoError(t, err)
	elsewhere, err := agent.NewTestSecret().ListenTLS(tcpAddr(t, "127.0.0.1:1"))
	must.NoError(t, err)
	old := rogue(t)
	old.MaxVersion = tls.VersionTLS12
	for name, config := range map[string]*tls.Config{
		"no TLS": nil, "no certificate": anonymous, "a certificate of its own": rogue(t), "another secret": foreign,
		"the key of the listener": skipVerify(listens), "the key of another listener": skipVerify(elsewhere), "an old TLS": old,
	} {
		for _, request := range []string{
			"hPOST /internal/server HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
			"hPOST /internal/join HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nConnection: close\r\n\r\n" + `{"ID":"rogue","Address":"127.0.0.1:9999"}`[:40],
			"hGET /v1/nodes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
			"r\x01",
		} {
			must.Eq(t, "", answerTo(t, at, config, request), must.Sprint(name))
		}
	}

	for name, secret := range map[string]*agent.PeerSecret{"another secret": other} {
		joins := start(t, agent.Config{Name: "rogue", PeerSecret: secret, Join: []string{victim.ServerAddr()}, LeaderWait: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // several attempts to join
		must.ErrorIs(t, joins.Ready(ctx), context.DeadlineExceeded, must.Sprint(name))
		cancel()
		must.Error(t, victim.Backend().Peers.Join(t.Context(), "rogue", joins.ServerAddr()))
	}
	must.SliceLen(t, 1, victim.Backend().Peers.Members())
	must.NoError(t, victim.Backend().Reader.Consistent(t.Context()))

	// The check finds an open port: the secret lets in.
	config := result.Of(agent.NewTestSecret().DialTLS(at)).OK(t)
	must.StrContains(t, answerTo(t, at, config, "hPOST /internal/server HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\nConnection: close\r\n\r\n"+`{"Members":1}`), `"ID":"victim"`)
}

func skipVerify(c *tls.Config) *tls.Config {
	c.VerifyConnection = nil
	return c
}

func tcpAddr(t *testing.T, address string) net.Addr {
	t.Helper()
	a := result.Of(net.ResolveTCPAddr("tcp", address)).OK(t)
	return a
}

// answerTo returns all that a listener sends after a request, inside TLS if there is a config.
func answerTo(t *testing.T, at net.Addr, config *tls.Config, request string) string {
	t.Helper()
	conn := result.Of(net.Dial("tcp", at.String())).OK(t)
	defer conn.Close()
	must.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	var plain io.ReadWriter = conn
	if config != nil {
		plain = tls.Client(conn, config)
	}
	if _, err := io.WriteString(plain, request); err != nil {
		return ""
	}
	answer, err := io.ReadAll(plain)
	must.False(t, errors.Is(err, os.ErrDeadlineExceeded), must.Sprint("the listener neither answers nor closes the connection"))
	if config == nil && len(answer) > 0 {
		must.EqOp(t, 0x15, answer[0], must.Sprint("more than a TLS alert"))
		return ""
	}
	return string(answer)
}

// A program that listens at the address of a peer cannot act as the peer. It gets no certificate of the
// server that connects and nothing inside TLS. It also cannot pass the connection on to another server,
// or back: raft would count the answer of that server as the answer of the peer.
func TestSecurity_RogueListener(t *testing.T) {
	t.Parallel()
	server := start(t, agent.Config{Name: "s1", BootstrapExpect: 1})
	ready(t, server)

	t.Run("terminates", func(t *testing.T) {
		t.Parallel()
		l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
		defer l.Close()
		config := rogue(t)
		received := make(chan tls.ConnectionState, 1)
		config.VerifyConnection = func(s tls.ConnectionState) error { received <- s; return nil }
		inside := make(chan string, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				inside <- err.Error()
				return
			}
			defer conn.Close()
			data, _ := io.ReadAll(tls.Server(conn, config)) // the handshake fails
			inside <- string(data)
		}()
		must.ErrorContains(t, server.Backend().Peers.Join(t.Context(), "s2", l.Addr().String()), "does not have the peer secret")
		must.Eq(t, "", <-inside)
		must.Eq(t, 0, len(received), must.Sprint("the certificate of the server"))
	})
	t.Run("relays", func(t *testing.T) {
		t.Parallel()
		l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				to, err := net.Dial("tcp", server.ServerAddr())
				if err != nil {
					_ = conn.Close()
					return
				}
				go func() { _, _ = io.Copy(to, conn); _ = to.Close() }()
				go func() { _, _ = io.Copy(conn, to); _ = conn.Close() }()
			}
		}()
		must.ErrorContains(t, server.Backend().Peers.Join(t.Context(), "s1-again", l.Addr().String()), "does not have the peer secret")
		config := result.Of(agent.NewTestSecret().DialTLS(l.Addr())).OK(t)
		_, err := tls.Dial("tcp", l.Addr().String(), config)
		must.ErrorContains(t, err, "does not have the peer secret")
	})
}

// A server without certificates and without a secret does not listen for other servers, and is the only
// server of its cluster. Nodes, reads and writes work.
func TestSecurity_ClosedPort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, begin := range map[string]func(agent.Config) *agent.Agent{
		"in memory": func(c agent.Config) *agent.Agent {
			c.ServerTLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
			a := result.Of(agent.New(c.InMemory())).OK(t)
			t.Cleanup(func() { _ = stop(a) })
			return a
		},
		"one server": func(c agent.Config) *agent.Agent {
			c.DataDir, c.BootstrapExpect = dir, 1
			a := result.Of(agent.New(c)).OK(t)
			t.Cleanup(func() { _ = stop(a) })
			return a
		},
	} {
		l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
		free := l.Addr().String()
		a := begin(agent.Config{HTTPAddr: "127.0.0.1:0", ServerAddr: free}) // a test has the address, and the server needs none
		ready(t, a)
		must.NoError(t, l.Close())
		if conn, err := net.Dial("tcp", free); err == nil {
			_ = conn.Close()
			t.Errorf("%s: the server listens at %s", name, free)
		}
		peer := start(t, agent.Config{Name: "s2"})
		must.ErrorContains(t, a.Backend().Peers.Join(t.Context(), "s2", peer.ServerAddr()), "it has no port for other servers")
		n := testNode(1)
		reach(t, a, n)
		must.Eq(t, n.Name, answerOf(t, a, n), must.Sprint(name))
		r := result.Of(http.Post("http://"+a.HTTPAddr()+"/internal/server", "application/json", strings.NewReader("{}"))).OK(t)
		must.NoError(t, r.Body.Close())
		must.Eq(t, http.StatusNotFound, r.StatusCode, must.Sprint("requests of servers at the port of clients"))
	}
}

// A server of a cluster with others does not start when it could not authenticate them, and its data
// stays intact. A server that was alone starts without a secret and with one.
func TestAgent_clusterWithoutSecret(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir()}
	w := newServers(t, 2, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	stopped := w.agents[1]
	must.NoError(t, stop(stopped))
	_, err := agent.New(agent.Config{DataDir: dirs["s2"], HTTPAddr: "127.0.0.1:0", ServerAddr: stopped.ServerAddr()})
	must.ErrorIs(t, err, agent.ErrPeerAccess)
	must.ErrorContains(t, err, "the data directory is of a cluster with server s1 at "+w.agents[0].ServerAddr())
	again := start(t, agent.Config{DataDir: dirs["s2"], ServerAddr: stopped.ServerAddr()})
	ready(t, again)
	awaitSameState(t, w.agents[0], again)

	dir := t.TempDir()
	for i, secret := range []*agent.PeerSecret{nil, agent.NewTestSecret(), nil} {
		a := result.Of(agent.New(agent.Config{DataDir: dir, BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", PeerSecret: secret})).OK(t)
		ready(t, a)
		register(t, api(t, a), testNode(i))
		must.NoError(t, stop(a))
	}
}
