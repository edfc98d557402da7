package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// surveyTimeout bounds the wait for the answers of all servers.
const surveyTimeout = 2 * time.Second

// Survey asks all servers at once. It needs no leader.
func (p peers) Survey(ctx context.Context) []httpapi.Member {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	members := p.Members()
	silent := make([]map[raft.ServerID]time.Time, len(members))
	var asking sync.WaitGroup
	for i := range members {
		asking.Go(func() {
			m := &members[i]
			info, err := p.agent.askServer(ctx, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address)})
			if err == nil {
				silent[i] = info.Silent
				m.Understands = info.understood()
				m.Alive, m.Started, m.Build, m.Newest, m.Applied = true, info.Started, info.Build, info.Newest, info.Applied
			}
		})
	}
	asking.Wait()
	for i := range members {
		if m := &members[i]; !m.Alive {
			m.LastContact = lastContact(silent, raft.ServerID(m.ID))
		}
	}
	return members
}

// lastContact returns the newest contact with a server that any server knows, or zero.
func lastContact(known []map[raft.ServerID]time.Time, id raft.ServerID) (newest time.Time) {
	for _, silent := range known {
		if at := silent[id]; at.After(newest) {
			newest = at
		}
	}
	return newest
}

// askServer returns the description of one server, which may be this one. Another server at its
// address is an error.
func (a *Agent) askServer(ctx context.Context, s raft.Server) (serverInfo, error) {
	if string(s.ID) == a.Name() {
		return a.info(), nil
	}
	info, err := ask(ctx, a, string(s.Address), pathServer, a.info())
	if err == nil && info.ID != string(s.ID) {
		err = fmt.Errorf("the server at %s is %s, not %s", s.Address, info.ID, s.ID)
	}
	return info, err
}
