package httpapi

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// readAgent answers GET /v1/agent/self: the server that received the request. It asks no other
// server.
func readAgent(q *request) error {
	peers := q.backend.Peers
	// A server that is in no cluster is not among the members.
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
			"num_peers": strconv.Itoa(otherVoters(peers)), "protocol_version": raftProtocol, "last_contact": peers.LastContact().String(),
		}},
	})
}

// otherVoters counts the voters without this server.
func otherVoters(peers Peers) (count int) {
	for _, m := range peers.Members() {
		if m.Voter && m.ID != peers.Name() {
			count++
		}
	}
	return count
}

// raftProtocol is the version of the raft protocol that servers show in their tags.
const raftProtocol = "3"

// listMembers answers GET /v1/agent/members: all servers. The server that received the request asks
// each of them for its status and build. It needs no leader.
func listMembers(q *request) error {
	list := []wire.AgentMember{}
	for _, m := range q.backend.Peers.Survey(q.Context()) {
		list = append(list, agentMember(q, m))
	}
	return q.answer(wire.ServerMembers{
		ServerName: q.backend.Peers.Name(), ServerRegion: q.options.Region, ServerDC: q.options.Datacenter, Members: list,
	})
}

// agentMember returns the member in the form of the API. Its status is failed if m.Alive is false.
func agentMember(q *request, m Member) wire.AgentMember {
	status := "failed"
	if m.Alive {
		status = "alive"
	}
	host, port := hostPort(m.Address)
	return wire.AgentMember{Name: m.ID, Addr: host, Port: port, Status: status, Tags: map[string]string{
		"role": "nomad", "region": q.options.Region, "dc": q.options.Datacenter, "id": m.ID,
		"rpc_addr": host, "port": strconv.Itoa(int(port)),
		"build": cmp.Or(m.Build, "unknown"), "vsn": "1", "raft_vsn": raftProtocol,
	}}
}

// readHealth answers GET /v1/agent/health, for load balancers: 200, or 500 while the server knows no
// leader, or 500 for type=client. The caller needs no right.
func readHealth(q *request) error {
	code, answer := http.StatusOK, wire.AgentHealth{}
	healthOf := func(ok bool, problem string) *wire.Health { // sets the code, too
		if ok {
			return &wire.Health{Ok: true, Message: "ok"}
		}
		code = http.StatusInternalServerError
		return &wire.Health{Message: problem}
	}
	switch kind := q.URL.Query().Get("type"); kind {
	case "", "server":
		answer.Server = healthOf(q.backend.Peers.Leader() != "", "No cluster leader")
	case "client":
		answer.Client = healthOf(false, "this agent is a server, not a client")
	default:
		return fail(http.StatusBadRequest, fmt.Sprintf("unknown type %q", kind))
	}
	return answerAs(q, code, answer)
}

// hostPort splits an address. If the text is no "host:port", all of it is the host, and the port
// is 0.
func hostPort(address string) (host string, port uint16) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, 0
	}
	number, _ := strconv.ParseUint(text, 10, 16)
	return host, uint16(number)
}

// readLeader answers GET /v1/status/leader: the raft address of the leader, or an empty text if the
// server knows no leader. The caller needs no right.
func readLeader(q *request) error { return q.answer(q.backend.Peers.Leader()) }

// listPeers answers GET /v1/status/peers: the raft addresses of all servers. The caller needs no
// right.
func listPeers(q *request) error {
	list := []string{}
	for _, m := range q.backend.Peers.Members() {
		list = append(list, m.Address)
	}
	return q.answer(list)
}

// listRegions answers GET /v1/regions: the only region. The caller needs no right.
func listRegions(q *request) error { return q.answer([]string{q.options.Region}) }
