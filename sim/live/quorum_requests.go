package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// request is something that servers are asked for.
type request func(context.Context, *server.Server) error

// requestOf is the request that does what a message does, or nil.
func requestOf(m shims.Message) request {
	switch m := m.(type) {
	case *shims.NodeUpdateDrain:
		return func(ctx context.Context, s *server.Server) error {
			_, err := s.UpdateDrain(ctx, m.DrainUpdate)
			return err
		}
	case *shims.NodeRegister:
		return func(ctx context.Context, s *server.Server) error {
			_, err := s.RegisterNode(ctx, m.Node)
			return err
		}
	case *shims.NodeUpdateStatus:
		return func(ctx context.Context, s *server.Server) error {
			_, err := s.UpdateNodeStatus(ctx, m.Node, m.Status)
			return err
		}
	case *shims.JobRegister:
		return func(ctx context.Context, s *server.Server) error {
			_, err := s.RegisterJob(ctx, m.Job)
			return err
		}
	case *shims.AllocClientUpdate:
		return func(ctx context.Context, s *server.Server) error {
			_, err := s.ReportAllocs(ctx, m.Reports)
			return err
		}
	}
	return nil
}

// propose has whoever leads do what the message asks for. Clients repeat what was not
// applied by themselves; for operators it is asked again.
func (q *quorum) propose(s world.Source, m shims.Message, reply func(shims.Answer)) (taken bool) {
	ask := requestOf(m)
	switch {
	case ask == nil:
		q.fail(fmt.Errorf("%s: servers have no such request", m.Type()))
		return false
	case s == world.FromClients:
		q.reporting.Go(func() { reply(answerTo(q.once(ask))) })
	default:
		q.requests.add(func() { reply(answerTo(q.again(ask))) })
	}
	return true
}

func answerTo(err error) shims.Answer {
	if err != nil {
		return shims.Answer{Outcome: raftwrite.Unknown, Err: err}
	}
	return shims.Answer{Outcome: raftwrite.Applied}
}

// once makes a request of a server that believes that it leads.
func (q *quorum) once(ask request) error {
	for _, m := range q.members {
		if s := q.runs(m); s != nil && s.Leads() {
			return ask(q.over, s)
		}
	}
	return shims.ErrRejected
}

// again makes a request until it is applied or refused, or the play is over.
func (q *quorum) again(ask request) error {
	for {
		err := q.once(ask)
		if !errors.Is(err, shims.ErrBusy) && !errors.Is(err, shims.ErrRejected) && !errors.Is(err, shims.ErrUnknown) {
			return err
		}
		if sleep(q.over, lookAgain); q.over.Err() != nil {
			return context.Cause(q.over)
		}
	}
}
