package disks

import (
	"bytes"
	"io"
	"math/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
)

// A stream of data is cut when nothing arrives for a time, and not when all of it takes as long. Bug: no test had a
// copy that takes longer.
func TestData_stallCountsFromTheLastProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pauses []time.Duration // before each part
		want   error
	}{
		"slow":                {[]time.Duration{0, 20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second}, nil},
		"steady":              {[]time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}, nil},
		"nothing at first":    {[]time.Duration{30 * time.Second, 0, 0, 0, 0}, errDataStalled},
		"nothing in between":  {[]time.Duration{20 * time.Second, 20 * time.Second, 30 * time.Second, 0, 0}, errDataStalled},
		"nothing at the end":  {[]time.Duration{0, 0, 0, 0, 30 * time.Second}, errDataStalled},
		"slow, then a pause":  {[]time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second, 30 * time.Second}, errDataStalled},
		"a pause, then quick": {[]time.Duration{24 * time.Second, 0, 0, 0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, into := tmpfs.Folder(t), tmpfs.Folder(t)
			content := make([]byte, 4*256<<10)
			_, _ = rand.New(rand.NewSource(1)).Read(content)
			must.NoError(t, from.WriteFile("a", content, 0o600))
			var all bytes.Buffer
			must.NoError(t, datacopy.Send(t.Context(), &all, []datacopy.Source{{Name: "alloc/data", Root: from}}, datacopy.Position{}))
			synctest.Test(t, func(t *testing.T) {
				r, err := datacopy.NewReceiver(datacopy.Options{Into: into, Folders: []string{"alloc/data"}, MaxBytes: 100 << 20, Reserve: 1})
				must.NoError(t, err)
				out, in := io.Pipe()
				written := make(chan struct{})
				go func() {
					defer close(written)
					for _, pause := range c.pauses {
						time.Sleep(pause)
						if _, err := in.Write(all.Next(256<<10 + 8)); err != nil {
							return
						}
					}
					_ = in.CloseWithError(io.EOF)
				}()
				err = new(Disks).receive(&dataCopy{ctx: t.Context(), receiver: r}, out, "a", func(client.DataProgress) {})
				must.ErrorIs(t, err, c.want)
				must.EqOp(t, c.want == nil, err == nil)
				_ = out.Close()
				<-written
				must.NoError(t, r.Close())
			})
		})
	}
}
