package nodeapi_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
)

// lastLine is a roster with the task web. The task writes its last line and ends just before a reader gets its
// state for the last time, so an earlier read has not the line.
type lastLine struct {
	*roster
	// calls is how often a reader gets the state until then. prints writes the line.
	calls  int
	prints func()
}

func (l *lastLine) Tasks(alloc string) ([]nodeapi.TaskState, <-chan struct{}, bool) {
	changed := make(chan struct{})
	close(changed) // the next call comes soon
	if l.calls--; l.calls > 0 {
		return []nodeapi.TaskState{{Name: "web"}}, changed, true
	}
	if l.calls == 0 {
		l.prints()
	}
	return []nodeapi.TaskState{{Name: "web", Dead: true}}, nil, true
}

// A follower gets what a task writes between the last read and the end of the task, whenever that is. Bug: no test
// failed if the follower read the log first, and then whether the task had ended.
func TestLogs_lastLine(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "before\n"} {
		// The first call finds the task, and later ones find whether the log is complete.
		for calls := 2; calls < 8; calls++ {
			t.Run(fmt.Sprintf("%q call=%d", before, calls), func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				path := filepath.Join(n.dirs.Logs("a"), "web.stdout.0")
				if before != "" {
					must.NoError(t, os.WriteFile(path, []byte(before), 0o600))
				}
				handler := nodeapi.New(nodeapi.Options{Dirs: n.dirs, Host: func(context.Context) (*hoststats.Sample, error) { return nil, nil }, Roster: &lastLine{
					roster: n.tasks, calls: calls,
					prints: func() { must.NoError(t, os.WriteFile(path, []byte(before+"the end\n"), 0o600)) },
				}})
				n.server.Config.Handler = handler
				answer := n.serve(t.Context(), strings.Split(followWeb, "?")[0], strings.Split(followWeb, "?")[1]+"&plain=true")
				must.EqOp(t, before+"the end\n", answer.Body.String())
			})
		}
	}
}
