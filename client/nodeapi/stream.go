package nodeapi

import (
	"net/http"
	"strings"
)

// stream sends one file in frames, and follows it.
func (h *reader) stream(w http.ResponseWriter, r *http.Request) error {
	_, name, q := target(r)
	offset, fromEnd, follow, plain := q.offset(), q.fromEnd(), q.flag("follow", true), q.flag("plain", false)
	if q.err != nil {
		return q.err
	}
	file, info, err := h.open(r)
	if err != nil {
		return err
	}
	defer file.Close()
	if fromEnd {
		offset = max(0, info.Size()-offset)
	}
	f := newSender(w, plain)
	defer f.end()
	g := &growing{file: file, name: strings.Trim(name, "/"), offset: min(offset, info.Size())}
	if !follow {
		end := info.Size()
		if err := h.drain(r.Context(), f, g, func() bool { return g.offset >= end }); err != nil {
			return err
		}
		return f.begin()
	}
	changed, stop := h.watch(file.Folder, func(other string) bool { return other == file.Name })
	defer stop()
	return h.follow(r.Context(), f, g, changed, func() (bool, <-chan struct{}) { return false, nil })
}
