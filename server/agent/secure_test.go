package agent_test

import (
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// Servers with certificates of one authority form a cluster and forward requests. A server without
// such a certificate cannot join.
func TestCluster_mutualTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	with := func(a authority) *tls.Config {
		return newFiles(t, ca.pem(), a.server("global")).open().Peers()
	}
	w := newServers(t, 3, func(c *agent.Config) { c.ServerTLS = with(ca) })
	for i, a := range w.agents {
		register(t, api(t, a), testNode(i))
	}
	awaitSameState(t, w.agents...)
	must.SliceLen(t, 3, w.agents[0].Backend().Peers.Members())

	stranger := w.start(agent.Config{Name: "stranger", LeaderWait: 1})
	_, _, err := api(t, stranger).Nodes(t.Context(), apiclient.NodesQuery{})
	must.ErrorContains(t, err, "No cluster leader")
	must.SliceLen(t, 3, w.leader(w.agents[:3]...).Backend().Peers.Members())
	w.agents = w.agents[:3]
}

func TestConfig_refuses(t *testing.T) {
	t.Parallel()
	anywhere, secret := "0.0.0.0:0", agent.NewTestSecret()
	for name, c := range map[string]struct {
		config agent.Config
		want   string
	}{
		"HTTP beyond this machine":      {agent.Config{HTTPAddr: anywhere}, "every host could drain nodes"},
		"all interfaces":                {agent.Config{HTTPAddr: ":0"}, "every host could drain nodes"},
		"TLS without client certs":      {agent.Config{HTTPAddr: anywhere, HTTPTLS: new(tls.Config)}, "every host could drain nodes"},
		"servers beyond this machine":   {agent.Config{ServerAddr: anywhere, PeerSecret: secret, AllowInsecure: true}, "0.0.0.0:0 is not a loopback address"},
		"one server beyond it":          {agent.Config{ServerAddr: anywhere, AllowInsecure: true}, "0.0.0.0:0 is not a loopback address"},
		"an address beyond it":          {agent.Config{Advertise: "10.0.0.1:1", PeerSecret: secret}, "10.0.0.1:1 is not a loopback address"},
		"a peer beyond it":              {agent.Config{Join: []string{"127.0.0.1:1", "s2.example.org:1"}, PeerSecret: secret}, "s2.example.org:1 is not a loopback address"},
		"a voter beyond it":             {agent.Config{Name: "s1", Voters: []raft.Server{{ID: "s1", Address: "10.0.0.1:1"}}, PeerSecret: secret}, "10.0.0.1:1 is not a loopback address"},
		"a peer without a secret":       {agent.Config{Join: []string{"127.0.0.1:1"}}, "servers must authenticate each other"},
		"peers without a secret":        {agent.Config{BootstrapExpect: 2}, "servers must authenticate each other"},
		"voters without a secret":       {agent.Config{Name: "s1", Voters: append(newVoters(), raft.Server{ID: "s2", Address: "127.0.0.1:2"})}, "servers must authenticate each other"},
		"a secret beside certificates":  {agent.Config{ServerTLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}, PeerSecret: secret}, "exclude each other"},
		"nothing to advertise":          {agent.Config{ServerAddr: anywhere, ServerTLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, "Advertise is required"},
		"an address without a port":     {agent.Config{HTTPAddr: "127.0.0.1"}, "Config.HTTPAddr"},
		"a server without a port":       {agent.Config{ServerAddr: "127.0.0.1"}, "Config.ServerAddr"},
		"an invalid advertised address": {agent.Config{Advertise: ":1"}, "Config.Advertise"},
		"TLS without verification":      {agent.Config{ServerTLS: new(tls.Config)}, "RequireAndVerifyClientCert"},
		"two ways to bootstrap":         {agent.Config{BootstrapExpect: 3, Voters: newVoters()}, "set one of them"},
		"voters without a name":         {agent.Config{Voters: newVoters()}, "Config.Name"},
		"a negative number of servers":  {agent.Config{BootstrapExpect: -1}, "BootstrapExpect"},
		"a negative LeaderWait":         {agent.Config{LeaderWait: -1}, "LeaderWait"},
		"a negative StopTimeout":        {agent.Config{StopTimeout: -1}, "StopTimeout"},
		"invalid heartbeats":            {agent.Config{Heartbeats: invalidHeartbeats()}, "Config.Heartbeats"},
		"an invalid API":                {agent.Config{API: invalidAPI()}, "MaxBody"},
		"the name of another server":    {agent.Config{DataDir: dirOf(t, "s1"), Name: "s2"}, `belongs to server "s1"`},
		"an impossible directory":       {agent.Config{DataDir: "/dev/null/x"}, "data directory"},
		"an invalid drainer":            {agent.Config{Drainer: invalidDrainer()}, "MaxInFlight"},
		"an HTTP address that is used":  {agent.Config{HTTPAddr: used(t)}, "listening for HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := c.config
			if config.HTTPAddr == "" {
				config.HTTPAddr = "127.0.0.1:0"
			}
			if config.ServerAddr == "" {
				config.ServerAddr = "127.0.0.1:0"
			}
			_, err := agent.New(config)
			must.ErrorContains(t, err, c.want)
		})
	}
}

// An agent with AllowInsecure serves its API on all interfaces.
func TestConfig_allowInsecure(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{HTTPAddr: "0.0.0.0:0", AllowInsecure: true, BootstrapExpect: 1})
	ready(t, a)
	r := result.Of(http.Get("http://" + a.HTTPAddr() + "/v1/status/leader")).OK(t)
	must.NoError(t, r.Body.Close())
}
