package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A client that starts again while no server answers counts the time without servers from the last contact of the
// client before it. Bug: no test noticed a client that gave its tasks the whole time again, although the servers
// had freed their volumes meanwhile.
func TestGuards_contactOfTheClientBefore(t *testing.T) {
	t.Parallel()
	groups, err := cgroup.Find("/")
	must.NoError(t, err)
	for name, c := range map[string]struct {
		contact time.Duration
		refused bool
	}{
		"in this boot": {1, true}, // shortly after the boot
		"none":         {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened := bootclock.Now()
			g := newGuards(Options{Config: &config.Config{}}, t.TempDir(), groups, guard.Contact{Sent: c.contact}, nil, quiet())
			if !c.refused {
				must.Between(t, opened, g.newest().Sent, bootclock.Now())
				return
			}
			must.EqOp(t, c.contact, g.newest().Sent)
			if groups.Kind() == "none" {
				t.Skip("a task has a guard only with control groups")
			}
			group := &cluster.TaskGroup{Name: "g", Tasks: []*cluster.Task{{Name: "t"}}, Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: opened - c.contact}}
			alloc := &cluster.Allocation{ID: "a", TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}}
			must.ErrorContains(t, g.mayStart(alloc), "no contact with the servers for")
		})
	}
}

// A client reads the last contact from its data directory.
func TestOpen_lastContact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	boot, err := process.BootID()
	must.NoError(t, err)
	must.NoError(t, os.MkdirAll(w.config.DataDir, 0o700))
	content := fmt.Sprintf(`{"BootID":%q,"Sent":1}`, boot)
	must.NoError(t, os.WriteFile(filepath.Join(w.config.DataDir, contactFile), []byte(content), 0o600))
	n, err := Open(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}, Servers: w.api})
	must.NoError(t, err)
	must.EqOp(t, 1, n.shell.guards.newest().Sent)
	must.NoError(t, n.Close())
}
