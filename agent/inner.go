package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// Paths of the requests between servers, besides forwarded ones.
const (
	pathServer  = "/internal/server"
	pathPromise = "/internal/promise"
	pathJoin    = "/internal/join"
	pathRemove  = "/internal/remove"
)

// serverInfo describes a server.
type serverInfo struct {
	ID      string
	Address string
	// Expect is its [Config].BootstrapExpect.
	Expect int
	// Cluster is the id of its cluster, or of that which it is about to be in, or empty.
	Cluster string
	// Members is how many servers are in its cluster, zero if it is in none.
	Members int
	// Heard are the addresses of servers without a cluster that have asked it, or nil.
	Heard []string
	// Versions are the cluster versions that it understands. A server of commit 3dc2024 leaves it
	// out.
	Versions cluster.Versions
}

// understood are the cluster versions that the server understands.
func (i serverInfo) understood() cluster.Versions {
	if i.Versions == (cluster.Versions{}) {
		return cluster.Versions{Min: 1, Max: 1}
	}
	return i.Versions
}

// serverRef is a server to add, or only its id to remove it.
type serverRef struct {
	ID      string
	Address string
}

// newInner is the handler of the servers' port: the API for forwarded requests, and the requests
// that only servers send.
func newInner(a *Agent, api http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathServer, func(w http.ResponseWriter, r *http.Request) {
		var asker serverInfo
		if decode(w, r, &asker) {
			if asker.Members == 0 {
				a.membership.hear(asker.Address)
			} else if a.membership.id() == "" { // it is about to let this server in
				if err := a.membership.adopt(asker); err != nil {
					httpError(w, err)
					return
				}
			}
			answer(w, a.info())
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
		answer(w, a.info())
	})
	mux.HandleFunc("POST "+pathJoin, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Join(ctx, s.ID, s.Address)
	}))
	mux.HandleFunc("POST "+pathRemove, a.onLeader(func(ctx context.Context, s serverRef) error {
		return a.peers().Remove(ctx, s.ID)
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwarded{}, true)))
	})
	return mux
}

// onLeader handles a change of the servers, here or on the leader.
func (a *Agent) onLeader(change func(context.Context, serverRef) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxInnerBody))
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
			answer(w, a.info())
		case errors.Is(err, httpapi.ErrNotLeader):
			r.Body = io.NopCloser(bytes.NewReader(body))
			a.peers().Forward(w, a.forwardedOnce(r))
		default:
			httpError(w, err)
		}
	}
}

// forwardedOnce marks a request as forwarded if a peer's header says so.
func (a *Agent) forwardedOnce(r *http.Request) *http.Request {
	if r.Header.Get("X-Forwarded-For") == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), forwarded{}, true))
}

// maxInnerBody bounds the bodies between servers, in bytes.
const maxInnerBody = 1 << 20

func decode[T any](w http.ResponseWriter, r *http.Request, into *T) bool {
	if err := json.NewDecoder(io.LimitReader(r.Body, maxInnerBody)).Decode(into); err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

func answer(w http.ResponseWriter, info serverInfo) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(info) // the peer sees that it is cut off
}

// info describes this server.
func (a *Agent) info() serverInfo {
	return serverInfo{
		ID: a.Name(), Address: a.ServerAddr(), Expect: a.config.BootstrapExpect, Cluster: a.membership.id(),
		Members: len(a.peers().configuration().Servers), Heard: a.membership.known(),
		Versions: cluster.Understood(),
	}
}

// ask sends a request to a peer.
func ask[Body serverInfo | serverRef | promise](ctx context.Context, a *Agent, peer, path string, body Body) (info serverInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+a.config.LeaderWait)
	defer cancel()
	question, err := json.Marshal(body)
	if err != nil {
		return info, fmt.Errorf("asking %s: %w", peer, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+peer+path, bytes.NewReader(question))
	if err != nil {
		return info, fmt.Errorf("asking %s: %w", peer, err)
	}
	response, err := a.transport.RoundTrip(request)
	if err != nil {
		return info, fmt.Errorf("asking %s: %w", peer, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxInnerBody))
	if err != nil {
		return info, fmt.Errorf("asking %s: %w", peer, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return info, fmt.Errorf("%s says: %s: %w", peer, bytes.TrimSpace(text), httpapi.ErrNotFound)
	default:
		return info, fmt.Errorf("%s says: %s", peer, bytes.TrimSpace(text))
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return info, fmt.Errorf("asking %s: %w", peer, err)
	}
	return info, nil
}

// promise is a server's promise to take part in a new cluster of these servers, and in no cluster
// that another server begins.
type promise struct {
	// By is the server that begins the cluster.
	By     string
	Voters []raft.Server
	// Cluster is the new cluster's id.
	Cluster string
}
