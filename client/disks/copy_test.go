package disks

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// emptyDisks answer each request with all of an empty disk.
type emptyDisks struct {
	requests int
	open     int // streams that are not closed
}

type openStream struct {
	io.Reader
	of *emptyDisks
}

func (s openStream) Close() error {
	s.of.open--
	return nil
}

func (s *emptyDisks) Data(ctx context.Context, _ cluster.AllocID, _ []string, _ datacopy.Position) (io.ReadCloser, client.DataAnswer) {
	var all bytes.Buffer
	if err := datacopy.Send(ctx, &all, nil, datacopy.Position{}); err != nil {
		return nil, client.DataAnswer{Result: client.DataFailed, Why: err.Error()}
	}
	s.requests++
	s.open++
	return openStream{&all, s}, client.DataAnswer{}
}

// A copy waits for its turn without a stream, and makes another request then. After the success nothing of it is left.
// Bugs: no test had two copies at once, and the servers would count a stream that the client does not read. The
// context of each copy stayed below that of the client.
func TestDisks_aCopyWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	folders, err := allocdir.Open(t.TempDir())
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, folders.Close()) })
	must.NoError(t, folders.Build("a", nil))
	synctest.Test(t, func(t *testing.T) {
		servers := new(emptyDisks)
		d := New(Options{Servers: servers, Folders: folders, Tasks: func(*cluster.Allocation) []allocdir.Task { return nil }})
		d.turn <- struct{}{} // another copy runs
		c := d.begin(t.Context(), "a")
		answers := make(chan client.DataAnswer)
		go func() {
			answers <- d.Copy(t.Context(), &cluster.Allocation{ID: "a", Job: &cluster.Job{}}, func(client.DataProgress) {})
		}()
		synctest.Wait()
		must.EqOp(t, 1, servers.requests)
		must.EqOp(t, 0, servers.open)
		must.NoError(t, c.ctx.Err())
		<-d.turn
		must.EqOp(t, client.DataAnswer{}, <-answers)
		must.EqOp(t, 2, servers.requests)
		must.EqOp(t, 0, servers.open)
		must.ErrorIs(t, c.ctx.Err(), context.Canceled)
	})
}
