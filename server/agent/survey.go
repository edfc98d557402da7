package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// surveyTimeout bounds the wait for the answers of all servers.
const surveyTimeout = 2 * time.Second

// Survey requests the status of all servers at once. It needs no leader.
func (p peers) Survey(ctx context.Context) []httpapi.Member {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	members := p.Members()
	var servers []raft.Server
	for _, m := range members {
		servers = append(servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address)})
	}
	found, _ := fromAll(servers, func(s raft.Server) (serverInfo, error) { return p.agent.infoOf(ctx, s) })
	for i := range members {
		m := &members[i]
		info, alive := found[raft.ServerID(m.ID)]
		if !alive {
			m.LastContact = lastContact(found, raft.ServerID(m.ID))
			continue
		}
		m.Understands = info.understood()
		m.Alive, m.Started, m.Build, m.Newest, m.Applied = true, info.Started, info.Build, info.Newest, info.Applied
	}
	return members
}

// lastContact returns the newest contact with a server that any server has, or zero.
func lastContact(found map[raft.ServerID]serverInfo, id raft.ServerID) (newest time.Time) {
	for _, info := range found {
		if at := info.Silent[id]; at.After(newest) {
			newest = at
		}
	}
	return newest
}

// fromAll calls request for all servers at once, and returns the results by server. A server with an error has
// none. The errors are joined.
func fromAll[T any](servers []raft.Server, request func(raft.Server) (T, error)) (map[raft.ServerID]T, error) {
	results, errs := make([]T, len(servers)), make([]error, len(servers))
	var running sync.WaitGroup
	for i, s := range servers {
		running.Go(func() { results[i], errs[i] = request(s) })
	}
	running.Wait()
	found := make(map[raft.ServerID]T)
	for i, s := range servers {
		if errs[i] == nil {
			found[s.ID] = results[i]
		}
	}
	return found, errors.Join(errs...)
}

// infoOf returns the description of one server, which may be this one. Another server at its
// address is an error.
func (a *Agent) infoOf(ctx context.Context, s raft.Server) (serverInfo, error) {
	if string(s.ID) == a.Name() {
		return a.info(), nil
	}
	info, err := requestInfo(ctx, a, string(s.Address), pathServer, a.info())
	if err == nil && info.ID != string(s.ID) {
		err = fmt.Errorf("the server at %s is %s, not %s", s.Address, info.ID, s.ID)
	}
	return info, err
}
