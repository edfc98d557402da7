package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// Paths of the requests that only servers send.
const (
	pathServer  = "/internal/server"
	pathPromise = "/internal/promise"
	pathJoin    = "/internal/join"
	pathRemove  = "/internal/remove"
	pathRemoved = "/internal/removed"
	pathDigest  = "/internal/digest"
	pathVerdict = "/internal/verdict"
	pathSession = "/internal/session"
	pathProcess = "/internal/process"
	// pathNode is followed by the id of a node and the path of a request to its client.
	pathNode = "/internal/node/"
)

type serverInfo struct {
	ID      string
	Address string
	// Expect is its [Config].BootstrapExpect.
	Expect int
	// Cluster is the id of the cluster that it is in or joins, or empty.
	Cluster string
	// Members is the number of servers in its cluster, or zero without a cluster.
	Members int
	// Searching are the addresses of servers without a cluster that have sent requests to it, or nil.
	Searching []string `json:"Heard"`
	// Versions are the cluster versions that it understands. A server of commit 3dc2024 omits them.
	Versions cluster.Versions
	// Started is the start of its process, Build its build, Newest the index of the newest entry of its
	// log and Applied that of the newest applied one. Older servers leave them out.
	Started         time.Time
	Build           string
	Newest, Applied uint64
	// Silent is its last contact with each server that does not answer it, by id, or nil. The leader
	// has it, and without a leader those that followed the last one. Older servers leave it out.
	Silent map[raft.ServerID]time.Time `json:",omitempty"`
	// Leader is the address of the leader that it follows or is, or empty. Servers are the names of the
	// servers of its cluster. Older servers leave both out.
	Leader  string   `json:",omitempty"`
	Servers []string `json:",omitempty"`
}

func (i serverInfo) understood() cluster.Versions {
	if i.Versions == (cluster.Versions{}) {
		return cluster.Versions{Min: 1, Max: 1}
	}
	return i.Versions
}

// serverRef names a server to add or to remove. The address is empty for a removal.
type serverRef struct {
	ID      string
	Address string
}

// newPeerHandler returns the HTTP handler of the servers' port. It serves forwarded requests by the
// API, and the requests that only servers send.
func newPeerHandler(a *Agent, api http.Handler) http.Handler {
	mux := http.NewServeMux()
	answer(mux, a, pathServer, func(_ context.Context, sender serverInfo) (serverInfo, error) {
		var err error
		if sender.Members == 0 {
			a.membership.recordSearching(sender.Address)
		} else if a.membership.id() == "" { // the leader of a cluster is adding this server
			err = a.membership.adopt(sender)
		}
		return a.info(), err
	})
	answer(mux, a, pathPromise, func(_ context.Context, p promise) (serverInfo, error) {
		if err := a.membership.promise(p); err != nil {
			return serverInfo{}, failure.New(http.StatusConflict, err.Error())
		}
		return a.info(), nil
	})
	answer(mux, a, pathJoin, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Join(ctx, s.ID, s.Address)
	}))
	answer(mux, a, pathRemove, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Remove(ctx, s.ID)
	}))
	answer(mux, a, pathRemoved, func(_ context.Context, s serverRef) (serverInfo, error) { // older servers answer 404
		return a.info(), a.membership.removed(s.ID)
	})
	answer(mux, a, pathDigest, func(ctx context.Context, q digestRequest) (stateDigest, error) { return a.digests.at(ctx, q.At) })
	answer(mux, a, pathVerdict, func(_ context.Context, v verdict) (verdict, error) {
		err := checkVerdict(v)
		if err == nil {
			a.digests.setOwn(v)
		}
		return v, err
	})
	answer(mux, a, pathSession, a.sessions.serve)
	answer(mux, a, pathProcess, a.processes.serve)
	mux.HandleFunc(pathNode, a.sessions.serveHanded)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwarded{}, true)))
	})
	return mux
}

// answer makes the mux answer the requests of a path with the result of a function. A change of the
// servers whose error is ErrNotLeader is forwarded to the leader.
func answer[Body, Result any](mux *http.ServeMux, a *Agent, path string, f func(context.Context, Body) (Result, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var body Body
		text, err := io.ReadAll(io.LimitReader(r.Body, maxPeerBody))
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		if err != nil {
			httpapi.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
		result, err := f(r.Context(), body)
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(result) // the peer detects an incomplete answer
		case (path == pathJoin || path == pathRemove) && errors.Is(err, httpapi.ErrNotLeader):
			r.Body = io.NopCloser(bytes.NewReader(text))
			a.peers().Forward(w, a.markForwarded(r))
		default:
			httpError(w, err)
		}
	})
}

// onLeader is a change of the cluster's servers, which only the leader makes.
func (a *Agent) onLeader(change func(context.Context, serverRef) error) func(context.Context, serverRef) (serverInfo, error) {
	return func(ctx context.Context, s serverRef) (serverInfo, error) {
		if !a.peers().Leads() {
			return serverInfo{}, httpapi.ErrNotLeader
		}
		err := change(ctx, s)
		return a.info(), err
	}
}

// markForwarded marks a request as forwarded if a header of the peer names it.
func (a *Agent) markForwarded(r *http.Request) *http.Request {
	if r.Header.Get("X-Forwarded-For") == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), forwarded{}, true))
}

// maxPeerBody bounds the bodies between servers, in bytes.
const maxPeerBody = 1 << 20

// info returns the description of this server.
func (a *Agent) info() serverInfo {
	var names []string
	for _, s := range a.peers().configuration().Servers {
		names = append(names, string(s.ID))
	}
	return serverInfo{
		ID: a.Name(), Address: a.ServerAddr(), Expect: a.config.BootstrapExpect, Cluster: a.membership.id(),
		Members: len(names), Servers: names, Leader: a.peers().Leader(), Searching: a.membership.searchingServers(),
		Versions: cluster.Understood(),
		Started:  a.started.UTC(), Build: cmp.Or(a.config.API.Build, httpapi.DefaultBuild),
		Newest: a.server.Raft().LastIndex(), Applied: a.server.Raft().AppliedIndex(),
		Silent: a.contacts.last(),
	}
}

// requestInfo sends a request to a peer and returns the description with which it answers.
func requestInfo[Body serverInfo | serverRef | promise](ctx context.Context, a *Agent, peer, path string, body Body) (serverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout+a.config.LeaderWait)
	defer cancel()
	return request[serverInfo](ctx, a, peer, path, body)
}

// request sends a request to a peer and returns its answer. The caller bounds the time.
func request[Answer, Body any](ctx context.Context, a *Agent, peer, path string, body Body) (found Answer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("requesting from %s: %w", peer, err)
		}
	}()
	data, err := json.Marshal(body)
	if err != nil {
		return found, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+peer+path, bytes.NewReader(data))
	if err != nil {
		return found, err
	}
	response, err := a.transport.RoundTrip(r)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPeerBody))
	switch {
	case err != nil:
		return found, err
	case response.StatusCode == http.StatusNotFound:
		return found, fmt.Errorf("%s: %w", bytes.TrimSpace(text), httpapi.ErrNotFound)
	case response.StatusCode != http.StatusOK:
		return found, fmt.Errorf("%s", bytes.TrimSpace(text))
	}
	err = json.Unmarshal(text, &found)
	return found, err
}

// promise is a server's promise to join a new cluster of these servers, and no cluster that another
// server bootstraps.
type promise struct {
	// By is the server that bootstraps the cluster.
	By     string
	Voters []raft.Server
	// Cluster is the new cluster's id.
	Cluster string
}
