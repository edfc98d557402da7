package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// readAgent answers GET /v1/agent/self: the server that received the request. It sends no request to
// another server.
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

// listMembers answers GET /v1/agent/members: all servers. The server that received the request requests
// the status and the build of each of them. It needs no leader.
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

// readHealth answers GET /v1/agent/health, for load balancers: 200, or 500 while the server has no
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
		problem := NoLeaderText(q.backend.Peers)
		if q.backend.Peers.Removed() {
			problem = "this server was removed from its cluster: its log has the remedy"
		}
		answer.Server = healthOf(q.backend.Peers.Leader() != "", problem)
	case "client":
		answer.Client = healthOf(false, "this agent is a server, not a client")
	default:
		return failure.Bad("unknown type %q", kind)
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
// server has no leader. The caller needs no right.
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

// readMetrics answers GET /v1/metrics, and GET /metrics, the default path of Prometheus:
// the metrics of the server that received the request.
func readMetrics(q *request) error {
	if q.options.Metrics == nil {
		return failure.New(http.StatusNotFound, "this server has no metrics")
	}
	beginAnswer(q.w, answerTime) // it may begin with its body
	q.options.Metrics.ServeHTTP(q.w, q.Request)
	return nil
}

// Bounds of the time that a CPU profile or a trace takes, in seconds.
const (
	defaultProfileSeconds = 1
	maxProfileSeconds     = 60
)

// readProfile answers GET /v1/agent/pprof/{profile}: a profile of the server that received the
// request. It needs the right to write: a profile slows the server down, and shows more of it than any
// other read.
func readProfile(q *request) error {
	values := q.URL.Query()
	seconds, err := number(values, "seconds", maxProfileSeconds)
	if err != nil {
		return err
	}
	debug, err := number(values, "debug", 2)
	if err != nil {
		return err
	}
	gc, err := number(values, "gc", 1)
	if err != nil {
		return err
	}
	own := q.backend.Peers.Name()
	switch server := values.Get("server_id"); {
	case !q.options.Profiles:
		return failure.New(http.StatusNotFound, "this server does not record profiles: start it with -pprof")
	case values.Get("node_id") != "":
		return failure.New(http.StatusNotImplemented, "profiles of clients are not implemented")
	case server != "" && server != own && (server != "leader" || !q.backend.Peers.Leads()):
		return failure.Newf(http.StatusNotImplemented, "this is server %s: send the request to the server that server_id names", own)
	}
	orDefault(&seconds, defaultProfileSeconds)
	switch name := q.PathValue("profile"); name {
	case "cmdline":
		return attach(q.w, "text/plain; charset=utf-8", func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(os.Args, "\x00"))
			return err
		})
	case "profile":
		return record(q, seconds, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		return record(q, seconds, trace.Start, trace.Stop)
	default:
		profile := pprof.Lookup(name)
		if profile == nil {
			return failure.Newf(http.StatusNotFound, "unknown profile %q", name)
		}
		if gc > 0 && name == "heap" {
			runtime.GC()
		}
		kind := "application/octet-stream"
		if debug > 0 {
			kind = "text/plain; charset=utf-8"
		}
		return attach(q.w, kind, func(w io.Writer) error { return profile.WriteTo(w, debug) })
	}
}

// number is a parameter of a profile, or zero.
func number(values url.Values, name string, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, failure.Bad("%s is %q and must be a number from 0 to %d", name, text, most)
	}
	return n, nil
}

// record records for some seconds, less if the request ends before. The process has one recorder of
// each kind.
func record(q *request, seconds int, start func(io.Writer) error, stop func()) error {
	return attach(q.w, "application/octet-stream", func(w io.Writer) error {
		if err := start(w); err != nil {
			return failure.New(http.StatusConflict, err.Error())
		}
		defer stop()
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
			return nil
		case <-q.Context().Done():
			return context.Cause(q.Context())
		}
	})
}

// attach answers with what the function writes, or with its error.
func attach(w http.ResponseWriter, kind string, write func(io.Writer) error) error {
	var body bytes.Buffer
	if err := write(&body); err != nil {
		if _, refused := errors.AsType[*failure.Failure](err); refused {
			return err
		}
		return fmt.Errorf("taking the profile: %w", err)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = body.WriteTo(w) // the client may have disconnected
	return nil
}
