package live

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// request is a request to a server.
type request func(context.Context, *server.Server) error

// requestOf returns the request that makes a server write a message of an operator. If no such
// request exists, the returned function writes the message to the log directly.
func requestOf(m shims.Message) request {
	return func(ctx context.Context, s *server.Server) error {
		var err error
		switch m := m.(type) {
		case *shims.NodeUpdateDrain:
			_, err = s.UpdateDrain(ctx, m.DrainUpdate)
		case *shims.NodeRegister:
			_, err = s.RegisterNode(ctx, m.Node)
		case *shims.NodeDeregister:
			_, err = s.DeregisterNode(ctx, m.Nodes[0])
		case *shims.NodeUpdateStatus:
			_, err = s.UpdateNodeStatus(ctx, m.Node, m.Status)
		case *shims.NodeUpdateEligibility:
			_, err = s.UpdateEligibility(ctx, m.Node, m.Eligibility)
		case *shims.JobRegister:
			_, err = s.RegisterJob(ctx, m.Job, nil)
		case *shims.JobDeregister:
			_, err = s.StopJob(ctx, m.Job, m.Purge)
		case *shims.AllocClientUpdate:
			_, err = s.ReportAllocs(ctx, m.Reports)
		default:
			err = writeDirectly(s, m)
		}
		return err
	}
}

// writeDirectly writes a message to the log of a server that leads.
func writeDirectly(s *server.Server, m shims.Message) error {
	entry, err := shims.Encode(m)
	if err != nil {
		return err
	}
	if s.Raft().Apply(entry, time.Second).Error() != nil {
		return shims.ErrUnknown
	}
	return nil
}

// ask sends an operator's request until a leader applies or refuses it. It returns at once.
func (s *servers) ask(m shims.Message) {
	send := requestOf(m)
	s.asking.add(func() { s.sendUntilAnswered(send) })
}

// report sends a client's report once. If it is not applied, the client sends it again.
func (s *servers) report(reports []cluster.AllocReport, reply func(applied bool)) {
	s.reporting.Go(func() {
		reply(nil == s.send(func(ctx context.Context, s *server.Server) error {
			_, err := s.ReportAllocs(ctx, reports)
			return err
		}))
	})
}

// send sends a request to a server that believes that it leads.
func (s *servers) send(r request) error {
	for _, m := range s.members {
		if p := s.process(m); p != nil && p.Leads() {
			return r(s.over, p)
		}
	}
	return shims.ErrRejected
}

func (s *servers) sendUntilAnswered(r request) {
	for s.over.Err() == nil {
		err := s.send(r)
		if !errors.Is(err, shims.ErrBusy) && !errors.Is(err, shims.ErrRejected) && !errors.Is(err, shims.ErrUnknown) {
			return
		}
		sleep(s.over, pollInterval)
	}
}
