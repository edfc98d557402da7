package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The verdicts about calls. Only outOfOrder and inFlight are mistakes of the caller.
const (
	inOrder    = "in order"
	outOfOrder = "out of order"
	// inFlight means that another call of the volume had not ended, and that its caller still waited.
	inFlight = "in flight"
	// abandoned means that another call of the volume had not ended, and that its caller no longer
	// waited. This is not a mistake of the caller.
	abandoned = "abandoned"
	// invalid means that the request was not valid.
	invalid = "invalid"
)

// gate lets calls through, one at a time for each volume.
type gate struct {
	store  *store
	faults *faults
	logger *slog.Logger
	// strict is the log of the strict mode. It is nil without the strict mode, and the order of calls
	// is then not checked. Several programs may append to one file.
	strict *os.File

	mu      sync.Mutex
	flights map[string]context.Context // guarded by mu; by volume, the contexts of calls in flight
}

// openLog opens or creates a log. If a process died while it wrote a line, openLog ends the line.
func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	last := []byte{'\n'}
	if size, err := file.Seek(0, io.SeekEnd); err == nil && size > 0 {
		_, _ = file.ReadAt(last, size-1)
	}
	if last[0] != '\n' {
		_, _ = file.WriteString("\n") // the next write has the same error
	}
	return file, nil
}

// entry is a line of the strict mode's log.
type entry struct {
	// Began is when the call arrived, and Time is when its answer was sent.
	Began time.Time `json:"began"`
	Time  time.Time `json:"time"`
	call
	Verdict string `json:"verdict"`
	// Code is the gRPC code of the answer.
	Code  string `json:"code"`
	Error string `json:"error,omitempty"`
}

// run does the work of a call, unless its request is not valid or the call is out of order.
func (g *gate) run(ctx context.Context, c call, wrong error, work func(*state) error) error {
	e := entry{Began: time.Now().UTC(), call: c}
	var err error
	e.Verdict, err = g.verdict(ctx, c, wrong, work)
	err = coded(err)
	e.Time, e.Code = time.Now().UTC(), status.Code(err).String()
	if err != nil {
		e.Error = status.Convert(err).Message()
	}
	g.logger.Info("a call was answered", "call", c.Name, "volume", c.Volume, "node", c.Node, "staging", c.Staging,
		"target", c.Target, "verdict", e.Verdict, "code", e.Code, "error", e.Error, "took", e.Time.Sub(e.Began))
	if g.strict == nil {
		return err
	}
	line, failed := json.Marshal(e)
	if failed == nil {
		_, failed = g.strict.Write(append(line, '\n'))
	}
	if failed == nil {
		failed = g.strict.Sync()
	}
	if failed != nil {
		return status.Errorf(codes.Internal, "write the log of calls: %v", failed)
	}
	return err
}

// verdict checks a call, and does its work if the call is in order.
func (g *gate) verdict(ctx context.Context, c call, wrong error, work func(*state) error) (string, error) {
	if wrong != nil {
		return invalid, wrong
	}
	if verdict := g.begin(ctx, c.Volume); verdict != "" {
		return verdict, status.Errorf(codes.Aborted, "another call of the volume %s is in flight", c.Volume)
	}
	defer g.end(c.Volume)
	verdict := inOrder
	unlessOutOfOrder := func(do func(*state) error) error {
		return g.store.locked(func(s *state) error {
			if g.strict != nil {
				if why := c.outOfOrder(s.Volumes[c.Volume].Published, s.existing(c.Volume)); why != "" {
					verdict = outOfOrder
					return status.Errorf(codes.FailedPrecondition, "%s is out of order: %s", c.Name, why)
				}
			}
			return do(s)
		})
	}
	// A call is checked when it arrives, and again when its work starts, because other processes of
	// the plugin may have changed the state meanwhile.
	err := unlessOutOfOrder(func(*state) error { return nil })
	if err == nil {
		err = g.faults.act(ctx, c)
	}
	if err == nil {
		err = unlessOutOfOrder(work)
	}
	return verdict, err
}

// begin records that a call is in flight. If another call is in flight, it returns a verdict.
func (g *gate) begin(ctx context.Context, volume string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch other := g.flights[volume]; {
	case other == nil:
		g.flights[volume] = ctx
		return ""
	case other.Err() != nil:
		return abandoned
	default:
		return inFlight
	}
}

func (g *gate) end(volume string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flights, volume)
}

// coded returns an error with a gRPC code. Errors without a code get the code Internal.
func coded(err error) error {
	if _, has := status.FromError(err); has { // also if there is no error
		return err
	}
	if code := status.FromContextError(err).Code(); code != codes.Unknown {
		return status.Error(code, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
