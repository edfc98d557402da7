package node

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// slowServers are test servers that answer AcceptAnonymous when the test sends the answer.
type slowServers struct {
	*scripted
	// requests gets a value for each request, answers the answer.
	requests chan struct{}
	answers  chan bool
}

func (s slowServers) AcceptAnonymous(context.Context) (bool, error) {
	s.requests <- struct{}{}
	return <-s.answers, nil
}

// A task starts only after the answer to a request that was sent after the task arrived, because
// the servers may have been restarted without tokens since an earlier request. Tasks that arrive
// together share a request.
func TestSecurity_ChecksBeforeEachStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := openHome(t.TempDir(), t.TempDir(), false, slog.New(slog.DiscardHandler))
		must.NoError(t, err)
		defer func() { must.NoError(t, h.close()) }()
		s := slowServers{new(scripted), make(chan struct{}), make(chan bool)}
		trust := newTrust(s, h, true, quiet())
		starts := make(chan error, 100)
		begin := func() { starts <- trust.check(t.Context(), rawExec) }

		go begin()
		<-s.requests
		for range 50 {
			go begin()
		}
		time.Sleep(time.Second) // they have come after the first request, and before the second
		s.answers <- false
		must.NoError(t, <-starts)
		<-s.requests
		s.answers <- true
		for range 50 {
			must.ErrorIs(t, <-starts, errAnonymous)
		}
	})
}

// A client that runs as root checks that the servers require tokens before each command in a task of raw_exec.
func TestSecurity_ExecChecksTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := openHome(t.TempDir(), t.TempDir(), false, slog.New(slog.DiscardHandler))
		must.NoError(t, err)
		defer func() { must.NoError(t, h.close()) }()
		s := slowServers{new(scripted), make(chan struct{}, 1), make(chan bool, 1)}
		s.answers <- true
		o := &operators{drivers: &drivers{trust: newTrust(s, h, true, quiet())}, life: t.Context()}
		_, err = o.Exec(t.Context(), nodeapi.Task{Driver: rawExec}, []string{"id"}, driver.ExecStreams{})
		must.ErrorIs(t, err, errAnonymous)
	})
}
