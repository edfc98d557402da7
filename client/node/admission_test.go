package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// occupied are servers to which another process is connected, until the number of refusals is over.
type occupied struct {
	*scripted
	refusals int
	err      error // after them
	// refused has capacity 1. It holds a value after a refusal.
	refused chan struct{}
}

func (s *occupied) OpenSession(context.Context) (*session.NodeEnd, error) {
	if s.refusals--; s.refusals < 0 {
		return nil, s.err
	}
	post(s.refused)
	return nil, fmt.Errorf("s1: %w", &session.Refused{Status: http.StatusConflict, Text: "another client process is connected"})
}

// A client that is refused waits until the other one is gone, and logs the sentence. A client without an
// answer of a server continues soon: it must keep its promises. A client of older servers does not wait.
func TestAdmit(t *testing.T) {
	t.Parallel()
	silent := errors.New("connection refused")
	for name, c := range map[string]struct {
		servers       occupied
		least, most   time.Duration
		logged, quiet string
	}{
		"free":                     {occupied{}, 0, 0, "", "msg"},
		"occupied":                 {occupied{refusals: 20}, time.Minute, 5 * time.Minute, "another client process is connected", "no server"},
		"no server":                {occupied{err: silent}, contactWait, 3 * contactWait, "no server accepts or refuses", "another client"},
		"an older server":          {occupied{err: &session.Refused{Status: http.StatusNotImplemented}}, 0, 0, "", "msg"},
		"a purged node":            {occupied{err: &session.Refused{Status: http.StatusNotFound, Text: "node not found"}}, contactWait, 3 * contactWait, "no server accepts or refuses", "another client"},
		"occupied, then no server": {occupied{refusals: 1, err: silent}, time.Hour, time.Hour, "another client process is connected", "no server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				logger := slog.New(slog.NewTextHandler(&log, nil))
				ctx, end := context.WithTimeout(t.Context(), time.Hour)
				defer end()
				c.servers.refused = make(chan struct{}, 1)
				began := time.Now()
				_, err := admit(ctx, &c.servers, newFailures(logger), logger)
				took := time.Since(began)
				must.EqOp(t, took == time.Hour, err != nil)
				must.Between(t, c.least, took, c.most)
				must.StrContains(t, log.String(), c.logged)
				must.StrNotContains(t, log.String(), c.quiet)
			})
		})
	}
}

// A client with a copy of the data directory of a client that runs touches nothing of it before the servers
// accept the copy. Bug: it took over or killed the driver of the other client, and reported that its tasks
// were lost.
func TestNode_clone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	w.awaitMock()
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{w.alloc("a", `{}`)}}
	w.awaitStatus("a", cluster.ClientRunning)
	before := w.kept()["mock"]

	own := *w.config
	own.DataDir = filepath.Join(t.TempDir(), "copy")
	must.NoError(t, exec.Command("cp", "-a", w.config.DataDir, own.DataDir).Run())
	servers := &occupied{scripted: &scripted{ttl: time.Minute}, refusals: 1 << 30, refused: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, err := Open(ctx, Options{Config: &own, LogKeeper: []string{"logkeeper"}, Servers: servers, nodeLocks: t.TempDir()}) // like on another machine
		opened <- err
	}()
	<-servers.refused
	end()
	must.ErrorContains(t, <-opened, "waiting for the servers to accept this client")

	// On the machine of the first client no server is needed. Bug: without servers the copy killed the driver
	// of the other client after five seconds.
	for name, open := range map[string]func(context.Context, Options) error{
		"open":    func(ctx context.Context, o Options) error { _, err := Open(ctx, o); return err },
		"destroy": func(ctx context.Context, o Options) error { return Destroy(ctx, o, Removal{NoGrace: true}) },
	} {
		err := open(t.Context(), Options{Config: &own, LogKeeper: []string{"logkeeper"}, Servers: servers})
		must.ErrorContains(t, err, fmt.Sprintf("is in use by the client with pid %d and the data directory %s", os.Getpid(), w.config.DataDir), must.Sprint(name))
		must.ErrorContains(t, err, "start it with an empty data directory")
	}
	must.Eq(t, before, w.kept()["mock"])
	alive, err := before.Process.Process.Alive()
	must.NoError(t, err)
	must.True(t, alive)
	must.Zero(t, servers.reports)
	stopped := w.alloc("a", `{}`)
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 3
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{stopped}}
	w.awaitStatus("a", cluster.ClientComplete)
	w.stop()
}
