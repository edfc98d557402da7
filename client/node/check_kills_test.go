package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A process of a script hangs in the kernel after its kill. Bug: each run of the check left one more.
func TestChecks_processThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	hangs := []process.Description{{PID: 7, State: 'D', Command: "date"}}
	for name, c := range map[string]struct {
		endsAfter, takes time.Duration
		err, want        string
	}{
		"none":             {0, 0, "", ""},
		"ends just now":    {50 * time.Millisecond, 100 * time.Millisecond, "", ""},
		"ends later":       {time.Second, time.Second, "", ""},
		"does not end":     {time.Hour, 2 * time.Second, "", "a process of the task has not ended after its kill, as of an earlier run: pid 7"},
		"cannot be listed": {time.Hour, 0, "no such file", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				began := time.Now()
				err := noneKilled(ctx, func() ([]process.Description, error) {
					switch {
					case c.err != "":
						return nil, errors.New(c.err)
					case time.Since(began) < c.endsAfter:
						return hangs, nil
					}
					return nil, nil
				})
				if c.want == "" {
					must.NoError(t, err)
				} else {
					must.ErrorContains(t, err, c.want)
				}
				must.EqOp(t, c.takes, time.Since(began))
			})
		})
	}
}
