package shims

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// LogHandler writes the records of a [slog.Logger] to an [hclog.Logger], which raft uses. The hclog
// logger adds its own time. Attributes of a group have the group's name and a dot before their key.
type LogHandler struct {
	logger hclog.Logger
	// group is the prefix of the next key: "" or "a.b.".
	group string
}

var _ slog.Handler = (*LogHandler)(nil)

// NewLogHandler returns a handler that writes to logger, which is never nil.
func NewLogHandler(logger hclog.Logger) *LogHandler { return &LogHandler{logger: logger} }

// Enabled reports whether the logger writes records of the level.
func (h *LogHandler) Enabled(_ context.Context, level slog.Level) bool {
	switch levelOf(level) {
	case hclog.Trace:
		return h.logger.IsTrace()
	case hclog.Debug:
		return h.logger.IsDebug()
	case hclog.Info:
		return h.logger.IsInfo()
	case hclog.Warn:
		return h.logger.IsWarn()
	}
	return h.logger.IsError()
}

// Handle writes one record.
func (h *LogHandler) Handle(_ context.Context, r slog.Record) error {
	pairs := make([]any, 0, 2*r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		pairs = appendPairs(pairs, h.group, a)
		return true
	})
	h.logger.Log(levelOf(r.Level), r.Message, pairs...)
	return nil
}

// WithAttrs returns a handler that adds the attributes to each record.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var pairs []any
	for _, a := range attrs {
		pairs = appendPairs(pairs, h.group, a)
	}
	return &LogHandler{logger: h.logger.With(pairs...), group: h.group}
}

// WithGroup returns a handler that puts the name before the keys that follow.
func (h *LogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &LogHandler{logger: h.logger, group: h.group + name + "."}
}

// levelOf returns the highest of the logger's levels that is not above the record's.
func levelOf(level slog.Level) hclog.Level {
	switch {
	case level < slog.LevelDebug:
		return hclog.Trace
	case level < slog.LevelInfo:
		return hclog.Debug
	case level < slog.LevelWarn:
		return hclog.Info
	case level < slog.LevelError:
		return hclog.Warn
	}
	return hclog.Error
}

// appendPairs appends an attribute's key and value, or those of its group.
func appendPairs(pairs []any, prefix string, a slog.Attr) []any {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range value.Group() {
			pairs = appendPairs(pairs, prefix, member)
		}
		return pairs
	}
	if a.Equal(slog.Attr{}) {
		return pairs
	}
	return append(pairs, prefix+a.Key, value.Any())
}
