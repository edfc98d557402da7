package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc/codes"
)

// Bug: the next line continued the line of a process that was killed while it wrote.
func TestOpenLog_halfLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct{ before, after string }{{"", ""}, {"{}\n", "{}\n"}, {"{}\n{", "{}\n{\n"}} {
		must.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
		file, err := openLog(path)
		must.NoError(t, err)
		must.NoError(t, file.Close())
		text, err := os.ReadFile(path)
		must.NoError(t, err)
		must.Eq(t, c.after, string(text))
	}
}

// A call is answered with an error if its line may not be on the disk. A pipe accepts a line, and
// cannot make it durable.
func TestGate_lineIsDurable(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	must.NoError(t, err)
	defer reader.Close()
	defer writer.Close()
	g := &gate{logger: slog.New(slog.DiscardHandler), strict: writer}
	err = g.run(t.Context(), call{Name: createVolume}, invalidArgument("wrong"), nil)
	mustCode(t, codes.Internal, err, "write the log of calls")
}
