package server

import "github.com/hashicorp/raft"

// Cut cuts a server off from all others. It runs on, and does not detect that at once.
func (g *Group) Cut(s *Server) {
	cut := s.config.Transport.(*raft.InmemTransport)
	cut.DisconnectAll()
	for _, o := range g.Servers() {
		if o != s {
			o.config.Transport.(*raft.InmemTransport).Disconnect(cut.LocalAddr())
		}
	}
}
