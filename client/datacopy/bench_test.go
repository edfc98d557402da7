package datacopy_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
)

// BenchmarkCopy copies folders through a pipe.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []struct{ files, bytes int }{{1, 64 << 20}, {10_000, 1 << 10}} {
		b.Run(fmt.Sprintf("files=%d/bytes=%d", size.files, size.bytes), func(b *testing.B) {
			from, dir := root(b)
			for i := range size.files {
				folder := filepath.Join(dir, fmt.Sprint(i/1000))
				must.NoError(b, os.MkdirAll(folder, 0o700))
				write(b, folder, fmt.Sprint(i), size.bytes)
			}
			b.SetBytes(int64(size.files * size.bytes))
			for b.Loop() {
				copyOnce(b, from)
			}
		})
	}
}

func copyOnce(b *testing.B, from *os.Root) {
	in, out := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := datacopy.Send(b.Context(), out, sources(from), datacopy.Position{})
		sent <- err
		_ = out.CloseWithError(err)
	}()
	r, _ := receiver(b, nil)
	must.NoError(b, r.Receive(b.Context(), in))
	must.NoError(b, <-sent)
	must.NoError(b, r.Close())
}
