package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
)

// A server that has lost its log does not help a server without the newest entries to lead. The
// acknowledged writes survive: the cluster has no leader until a server with them is back. The
// server with the lost log joins again as a new member.
func TestLostLog(t *testing.T) {
	for name, lose := range map[string]func(file string) error{
		"removed": os.Remove,
		"emptied": func(file string) error { return os.Truncate(file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startServers(t, time.Minute)
			s.registerJobs(2)
			s.sameState()
			first, second, third := s.all[0], s.all[1], s.all[2]
			s.kill(third)
			s.leaderOf(first, second)
			var acknowledged []string
			for i := range 20 {
				id, kind := fmt.Sprint("acknowledged-", i), "batch"
				job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
				job.AddTaskGroup(api.NewTaskGroup("main", 0).AddTask(api.NewTask("main", "mock")))
				must.NoError(t, s.do(t.Context(), func(c *api.Client) error {
					_, _, err := c.Jobs().Register(job, nil)
					return err
				}))
				acknowledged = append(acknowledged, id)
			}
			s.kill(first)
			s.kill(second)
			must.NoError(t, lose(filepath.Join(second.DataDir, "raft", "log.db")))

			s.start(third)
			for range 2 {
				s.start(second)
				must.Eq(t, 1, s.exits(second))
				must.StrNotContains(t, second.logged(), "goroutine ")
				line := second.lastLine("server recover -discard")
				must.StrContains(t, line, filepath.Join(second.DataDir, "raft", "log.db")+" is missing or empty")
				t.Logf("%s ended: %s", second.Name, line)
			}
			address, err := third.api.Status().Leader()
			must.True(t, err != nil || address == "", must.Sprint("there is no leader without the writes"))

			s.start(first)
			s.leaderOf(first)
			for _, p := range []*serverProcess{first, third} {
				for _, id := range acknowledged {
					s.await(id+" on "+p.Name, func() bool {
						state, _, err := p.get("/e2e/state")
						return err == nil && strings.Contains(state, id+"\"")
					})
				}
			}

			_, err = datadir.Discard(second.DataDir, time.Now())
			must.NoError(t, err)
			must.NoError(t, first.api.Operator().RaftRemovePeerByID(second.Name, nil))
			fourth := s.newcomer(os.Args[0])
			fourth.DataDir, fourth.Join = second.DataDir, []string{first.ServerAddr, third.ServerAddr}
			s.all = []*serverProcess{first, third, fourth}
			s.start(fourth)
			s.sameState()
			t.Logf("%d acknowledged writes survived", len(acknowledged))
		})
	}
}
