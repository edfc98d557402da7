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
)

// Paths of the requests that only servers send.
const (
	pathServer  = "/internal/server"
	pathPromise = "/internal/promise"
	pathJoin    = "/internal/join"
	pathRemove  = "/internal/remove"
	pathDigest  = "/internal/digest"
	pathVerdict = "/internal/verdict"
	pathSession = "/internal/session"
	// pathNode is followed by the id of a node and the path of a request to its client.
	pathNode = "/internal/node/"
)

// serverInfo describes a server.
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
}

// understood returns the cluster versions that the server understands.
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
	mux.HandleFunc("POST "+pathServer, func(w http.ResponseWriter, r *http.Request) {
		var sender serverInfo
		if decode(w, r, &sender) {
			if sender.Members == 0 {
				a.membership.recordSearching(sender.Address)
			} else if a.membership.id() == "" { // the leader of a cluster is adding this server
				if err := a.membership.adopt(sender); err != nil {
					httpError(w, err)
					return
				}
			}
			writeJSON(w, a.info())
		}
	})
	mux.HandleFunc("POST "+pathPromise, func(w http.ResponseWriter, r *http.Request) {
		var p promise
		if !decode(w, r, &p) {
			return
		}
		if err := a.membership.promise(p); err != nil {
			httpapi.WriteError(w, http.StatusConflict, err.Error())
			return
		}
		writeJSON(w, a.info())
	})
	mux.HandleFunc("POST "+pathJoin, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Join(ctx, s.ID, s.Address)
	}))
	mux.HandleFunc("POST "+pathRemove, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Remove(ctx, s.ID)
	}))
	mux.HandleFunc("POST "+pathDigest, func(w http.ResponseWriter, r *http.Request) {
		var q digestRequest
		if !decode(w, r, &q) {
			return
		}
		digest, err := a.digests.at(r.Context(), q.At)
		if err != nil {
			httpError(w, err)
			return
		}
		writeJSON(w, digest)
	})
	mux.HandleFunc("POST "+pathVerdict, func(w http.ResponseWriter, r *http.Request) {
		var v verdict
		if !decode(w, r, &v) {
			return
		}
		if err := checkVerdict(v); err != nil {
			httpapi.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
		a.digests.setOwn(v)
		writeJSON(w, v)
	})
	mux.HandleFunc("POST "+pathSession, func(w http.ResponseWriter, r *http.Request) {
		var q sessionRequest
		if decode(w, r, &q) {
			writeJSON(w, sessionAnswer{Held: a.sessions.of(q.Node) != nil})
		}
	})
	mux.HandleFunc(pathNode, a.sessions.serveHanded)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwarded{}, true)))
	})
	return mux
}

// onLeader handles a change of the cluster's servers. A server that does not lead forwards the
// request to the leader.
func (a *Agent) onLeader(change func(context.Context, serverRef) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxPeerBody))
		if err != nil {
			httpapi.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
		var s serverRef
		if err := json.Unmarshal(body, &s); err != nil {
			httpapi.WriteError(w, http.StatusBadRequest, err.Error())
			return
		}
		err = httpapi.ErrNotLeader
		if a.peers().Leads() {
			err = change(r.Context(), s)
		}
		switch {
		case err == nil:
			writeJSON(w, a.info())
		case errors.Is(err, httpapi.ErrNotLeader):
			r.Body = io.NopCloser(bytes.NewReader(body))
			a.peers().Forward(w, a.markForwarded(r))
		default:
			httpError(w, err)
		}
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

func decode[T any](w http.ResponseWriter, r *http.Request, into *T) bool {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxPeerBody)).Decode(into); err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

func writeJSON[T any](w http.ResponseWriter, body T) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the peer detects an incomplete answer
}

// info returns the description of this server.
func (a *Agent) info() serverInfo {
	return serverInfo{
		ID: a.Name(), Address: a.ServerAddr(), Expect: a.config.BootstrapExpect, Cluster: a.membership.id(),
		Members: len(a.peers().configuration().Servers), Searching: a.membership.searchingServers(),
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
