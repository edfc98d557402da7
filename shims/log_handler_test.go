package shims_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// secret is a value that logs must not show.
type secret string

func (secret) LogValue() slog.Value { return slog.StringValue("hidden") }

func TestLogHandler_Writes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"a message", func(l *slog.Logger) { l.Info("hello") }, "[INFO]  drain: hello\n"},
		{"each level", func(l *slog.Logger) {
			l.Log(t.Context(), slog.LevelDebug-1, "trace")
			l.Debug("debug")
			l.Warn("warn")
			l.Error("error")
			l.Log(t.Context(), slog.LevelError+4, "more")
		}, "[TRACE] drain: trace\n[DEBUG] drain: debug\n[WARN]  drain: warn\n[ERROR] drain: error\n[ERROR] drain: more\n"},
		{"values", func(l *slog.Logger) {
			l.Info("m", "node", cluster.NodeID("n1"), "took", time.Second, "error", errors.New("lost"), "count", 3)
		}, "[INFO]  drain: m: node=n1 took=1s error=lost count=3\n"},
		{"a value that resolves", func(l *slog.Logger) { l.Info("m", "token", secret("x")) }, "[INFO]  drain: m: token=hidden\n"},
		{"an empty attribute", func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, "m", slog.Attr{}) }, "[INFO]  drain: m\n"},
		{"groups", func(l *slog.Logger) {
			l.With("a", 1).WithGroup("").WithGroup("g").With("b", 2).Info("m", "c", 3, slog.Group("h", "d", 4), slog.Group("", "e", 5))
		}, "[INFO]  drain: m: a=1 g.b=2 g.c=3 g.h.d=4 g.e=5\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var written bytes.Buffer
			c.log(slog.New(shims.NewLogHandler(hclog.New(&hclog.LoggerOptions{
				Name: "drain", Level: hclog.Trace, Output: &written, DisableTime: true,
			}))))
			must.Eq(t, c.want, written.String())
		})
	}
}

func TestLogHandler_HasTheLevelOfItsLogger(t *testing.T) {
	t.Parallel()
	levels := []slog.Level{slog.LevelDebug - 4, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for first, level := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error, hclog.Off} {
		h := shims.NewLogHandler(hclog.New(&hclog.LoggerOptions{Level: level, Output: &bytes.Buffer{}}))
		for i, l := range levels {
			must.Eq(t, i >= first, h.Enabled(t.Context(), l), must.Sprintf("a logger of %s, a record of %s", level, l))
		}
	}
}
