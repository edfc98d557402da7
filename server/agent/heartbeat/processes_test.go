//race:skip one goroutine
package heartbeat_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	p := heartbeat.NewProcesses()
	must.True(t, p.SessionDue("n1").IsZero())
	must.True(t, p.Claim("n1", "a", true, epoch), must.Sprint("a new leader does not have the client"))
	must.False(t, p.Claim("n1", "a", false, epoch), must.Sprint("the first heartbeat after a change of the leader"))
	must.Eq(t, epoch.Add(heartbeat.SessionTime), p.SessionDue("n1"))
	must.False(t, p.Claim("n1", "a", true, epoch))
	must.True(t, p.Claim("n1", "b", false, epoch))
	// Bug: a process that opened its session later than that could lose its place to a copy meanwhile.
	later := epoch.Add(time.Minute)
	must.False(t, p.Claim("n1", "a", true, later))
	must.Eq(t, later.Add(heartbeat.SessionTime), p.SessionDue("n1"))
	must.True(t, p.Keep("n1", "a", "b", epoch))
	must.False(t, p.Keep("n1", "a", "b", epoch), must.Sprint("one event for each process"))
	recorded := 1
	for i := range 100 {
		if p.Keep("n1", "a", fmt.Sprint("c", i), epoch) {
			recorded++
		}
	}
	must.Eq(t, 4, recorded)
	p.Take("n1", "b", epoch)
	must.True(t, p.Claim("n1", "a", false, epoch))
	must.True(t, p.Keep("n1", "b", "a", epoch))
	must.True(t, p.Keep("n1", "a", "b", epoch), must.Sprint("the session of another process than expected answers"))
	must.False(t, p.Claim("n1", "a", false, epoch))
	must.True(t, p.Other("n1", "b"))
	must.False(t, p.Other("n1", "a"))
	p.Forget("n1")
	must.False(t, p.Other("n1", "a"))
	must.False(t, p.Claim("n1", "c", false, epoch))
}
