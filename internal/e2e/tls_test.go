package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// authority is a certificate authority of one test.
type authority struct {
	t           *testing.T
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	raw := a.create(a.certificate, a.certificate, a.key)
	var err error
	a.certificate, err = x509.ParseCertificate(raw)
	must.NoError(t, err)
	a.write("ca.pem", "CERTIFICATE", raw)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(a.t, err)
	return key
}

func (a *authority) create(c, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), a.key)
	must.NoError(a.t, err)
	return raw
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, content []byte) {
	must.NoError(a.t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
}

// sign writes NAME.pem and NAME-key.pem, a certificate for these host names.
func (a *authority) sign(name string, hosts ...string) {
	key := a.newKey()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must.NoError(a.t, err)
	raw := a.create(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: hosts, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, a.certificate, key)
	encoded, err := x509.MarshalECPrivateKey(key)
	must.NoError(a.t, err)
	a.write(name+".pem", "CERTIFICATE", raw)
	a.write(name+"-key.pem", "EC PRIVATE KEY", encoded)
}

// secureSite starts a server that demands certificates of the authority.
func secureSite(t *testing.T, ca *authority) *site {
	t.Helper()
	s := &site{servers: &servers{t: t}, binary: filepath.Join(t.TempDir(), "nodedrain"), dir: t.TempDir()}
	programs.Build(t, "../../cmd/nodedrain", s.binary)
	t.Cleanup(s.clean)
	ports := freePorts(t, 2)
	s.address = "https://" + ports[0]
	name := agent.ServerName("global")
	ca.sign("server", name, "localhost")
	ca.sign("operator", "operator")
	s.server = exec.Command(s.binary, "server", "-data-dir", filepath.Join(s.dir, "server"), "-bootstrap-expect", "1", "-http", ports[0], "-bind", ports[1],
		"-log-level", "error", "-ca", ca.file("ca.pem"), "-cert", ca.file("server.pem"), "-key", ca.file("server-key.pem"))
	s.beginServer()
	var err error
	s.api, err = api.NewClient(&api.Config{Address: s.address, TLSConfig: &api.TLSConfig{
		CACert: ca.file("ca.pem"), ClientCert: ca.file("operator.pem"), ClientKey: ca.file("operator-key.pem"), TLSServerName: name,
	}})
	must.NoError(t, err)
	s.await("a leader", func() bool {
		leader, err := s.api.Status().Leader()
		return err == nil && leader != ""
	})
	return s
}

// beginSecure starts a client with the driver mock and these lines in its block of servers. More is
// appended to its configuration.
func (s *site) beginSecure(name string, tls map[string]string, more string) *realNode {
	s.t.Helper()
	run, err := os.MkdirTemp("", "nd")
	must.NoError(s.t, err)
	s.t.Cleanup(func() { _ = os.RemoveAll(run) })
	n := &realNode{name: name, config: filepath.Join(s.dir, name+".hcl"), data: filepath.Join(s.dir, name), run: run}
	text := fmt.Sprintf("name = %q\ndata_dir = %q\nrun_dir = %q\nplugin \"mock\" {}\nservers {\n  addresses = [%q]\n", name, n.data, n.run, s.address)
	for key, value := range tls {
		text += fmt.Sprintf("  %s = %q\n", key, value)
	}
	must.NoError(s.t, os.WriteFile(n.config, []byte(text+"}\n"+more), 0o600))
	s.nodes = append(s.nodes, n)
	s.begin(n)
	return n
}

// A client and its server authenticate each other: the node is registered, its heartbeats are answered, it
// receives the allocations of the node, and its reports arrive. A client that cannot verify the server, or
// that the server cannot verify, stays outside and logs why.
//
//race:skip its programs do not have the detector
func TestNode_tls(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "the cluster's authority"), newAuthority(t, "another authority")
	s := secureSite(t, ca)
	ca.sign("client", "client")
	other.sign("client", "client")
	name := agent.ServerName("global")
	own := map[string]string{"ca_file": ca.file("ca.pem"), "cert_file": ca.file("client.pem"), "key_file": ca.file("client-key.pem"), "server_name": name}
	with := func(changes map[string]string) map[string]string {
		all := maps.Clone(own)
		maps.Copy(all, changes)
		return all
	}
	for _, c := range []struct {
		name string
		tls  map[string]string
		want string
	}{
		{"wrong-ca", with(map[string]string{"ca_file": other.file("ca.pem")}), "certificate signed by unknown authority"},
		{"wrong-name", with(map[string]string{"server_name": agent.ServerName("elsewhere")}), "certificate is valid for " + name},
		// The server refuses a client after the client's part of the handshake. The reason is in the error
		// of the request, although its write may fail first. A client sends no certificate of an authority
		// that the server does not name.
		{"wrong-certificate", with(map[string]string{"cert_file": other.file("client.pem"), "key_file": other.file("client-key.pem")}), "remote error: tls: certificate required"},
		{"no-certificate", map[string]string{"ca_file": ca.file("ca.pem"), "server_name": name}, "remote error: tls: certificate required"},
	} {
		n := s.beginSecure(c.name, c.tls, "")
		s.await("the words of "+c.name, func() bool {
			log := n.logs.String()
			return regexp.MustCompile("a request to the servers failed.*(" + c.want + ")").MatchString(log)
		})
	}

	n := s.beginSecure("n1", own, "")
	var id string
	s.await("a healthy driver", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false
		}
		id = nodes[0].ID
		return nodes[0].Status == "ready" && nodes[0].Drivers["mock"] != nil && nodes[0].Drivers["mock"].Healthy
	})
	kind, job := "service", "web"
	_, _, err := s.api.Jobs().Register(&api.Job{ID: &job, Name: &job, Type: &kind, Datacenters: []string{"dc1"}, TaskGroups: []*api.TaskGroup{
		api.NewTaskGroup("g", 2).AddTask(api.NewTask("t", "mock").SetConfig("stdout_string", "hello")),
	}}, nil)
	must.NoError(t, err)
	all := func(status string) func() bool {
		return func() bool {
			list := s.allocs(job)
			for _, a := range list {
				if a.NodeID != id || a.ClientStatus != status {
					return false
				}
			}
			return len(list) == 2
		}
	}
	s.await("running allocations", all("running"))
	contact := func() string {
		content, _ := os.ReadFile(filepath.Join(n.data, "contact.json")) // it may not exist yet
		return string(content)
	}
	before := contact()
	s.await("an answered heartbeat", func() bool { return contact() != before })
	_, _, err = s.api.Jobs().Deregister(job, false, nil)
	must.NoError(t, err)
	s.await("ended allocations", all("complete"))
	nodes, _, err := s.api.Nodes().List(nil)
	must.NoError(t, err)
	must.SliceLen(t, 1, nodes, must.Sprint("no other client is a node"))
	must.StrNotContains(t, n.logs.String(), "a request to the servers failed")
	s.end(n)
}
