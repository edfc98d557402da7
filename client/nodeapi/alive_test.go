package nodeapi

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// idle plays a command that does not read its input. Nothing else is requested of it.
type idle struct{ Tasks }

func (idle) Exec(ctx context.Context, _ Task, _ []string, _ driver.ExecStreams) (driver.ExitResult, error) {
	<-ctx.Done()
	return driver.ExitResult{}, context.Cause(ctx)
}

// A caller that vanishes while its input waits for the command is noticed by the next sign of life: the
// node does not read on, and does not see the end.
func TestExec_callerVanishesBehindItsInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		h := New(Options{Tasks: idle{}})
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			h.runExec(t.Context(), ours, bufio.NewReader(ours), execRequest{command: []string{"sleep"}})
			close(ended)
		}()
		_, err := io.WriteString(theirs, `{"stdin":{"data":"YQ=="}}`+"\n")
		must.NoError(t, err)
		synctest.Wait()
		sign := make([]byte, 3)
		_, err = io.ReadFull(theirs, sign)
		must.NoError(t, err)
		must.EqOp(t, "{}\n", string(sign))
		must.EqOp(t, aliveInterval, time.Since(began))
		must.NoError(t, theirs.Close())
		<-ended
		must.EqOp(t, 2*aliveInterval, time.Since(began))
	})
}
