package httpapi

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// readAgent answers GET /v1/agent/self: the server that received the request.
func readAgent(q *request) error {
	peers := q.backend.Peers
	self := wire.AgentMember{Name: peers.Name(), Status: "alive", Tags: map[string]string{}}
	for _, m := range peers.Members() {
		if m.ID == peers.Name() {
			m.Alive, m.Build = true, q.options.Build
			self = agentMember(q, m)
		}
	}
	return q.answer(wire.AgentSelf{
		Config: wire.AgentConfig{Region: q.options.Region, Datacenter: q.options.Datacenter, Name: peers.Name()},
		Member: self,
		Stats: map[string]map[string]string{"nomad": {
			"server": "true", "leader": strconv.FormatBool(peers.Leads()), "leader_addr": peers.Leader(), "known_regions": "1",
		}, "raft": {
			"num_peers": strconv.Itoa(numPeers(peers)), "protocol_version": raftVersion, "last_contact": peers.LastContact().String(),
		}},
	})
}

// numPeers counts the voters besides this server.
func numPeers(peers Peers) (count int) {
	for _, m := range peers.Members() {
		if m.Voter && m.ID != peers.Name() {
			count++
		}
	}
	return count
}

// raftVersion is the version of raft's protocol, in the tags of servers.
const raftVersion = "3"

// listMembers answers GET /v1/agent/members: the servers, with what they answer to the receiving
// server. It needs no leader.
func listMembers(q *request) error {
	list := []wire.AgentMember{}
	for _, m := range q.backend.Peers.Survey(q.Context()) {
		list = append(list, agentMember(q, m))
	}
	return q.answer(wire.ServerMembers{
		ServerName: q.backend.Peers.Name(), ServerRegion: q.options.Region, ServerDC: q.options.Datacenter, Members: list,
	})
}

// agentMember is a server as it answered a survey.
func agentMember(q *request, m Member) wire.AgentMember {
	status := "failed"
	if m.Alive {
		status = "alive"
	}
	host, port := hostPort(m.Address)
	return wire.AgentMember{Name: m.ID, Addr: host, Port: port, Status: status, Tags: map[string]string{
		"role": "nomad", "region": q.options.Region, "dc": q.options.Datacenter, "id": m.ID,
		"rpc_addr": host, "port": strconv.Itoa(int(port)),
		"build": cmp.Or(m.Build, "unknown"), "vsn": "1", "raft_vsn": raftVersion,
	}}
}

// readHealth answers GET /v1/agent/health, for load balancers: 200, or 500 while the server knows no
// leader. It needs no right.
func readHealth(q *request) error {
	code, answer := http.StatusOK, wire.AgentHealth{}
	fine := func(ok bool, wrong string) *wire.Health {
		if ok {
			return &wire.Health{Ok: true, Message: "ok"}
		}
		code = http.StatusInternalServerError
		return &wire.Health{Message: wrong}
	}
	switch kind := q.URL.Query().Get("type"); kind {
	case "", "server":
		answer.Server = fine(q.backend.Peers.Leader() != "", "No cluster leader")
	case "client":
		answer.Client = fine(false, "this agent is a server, and no client")
	default:
		return fail(http.StatusBadRequest, fmt.Sprintf("unknown type %q", kind))
	}
	return answerAs(q, code, answer)
}

// hostPort splits an address. A text that is no address is a host.
func hostPort(address string) (host string, port uint16) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, 0
	}
	number, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(number)
}

// readLeader answers GET /v1/status/leader: the address of the leader's raft, empty if none is
// known. It needs no right.
func readLeader(q *request) error { return q.answer(q.backend.Peers.Leader()) }

// listPeers answers GET /v1/status/peers: the addresses of the servers' rafts. It needs no right.
func listPeers(q *request) error {
	list := []string{}
	for _, m := range q.backend.Peers.Members() {
		list = append(list, m.Address)
	}
	return q.answer(list)
}

// listRegions answers GET /v1/regions: the only region. It needs no right.
func listRegions(q *request) error { return q.answer([]string{q.options.Region}) }
