package nodeapi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
)

// maxEntries is the largest number of entries of a folder that is listed.
const maxEntries = 10_000

// fileInfo describes a file, in the form of the wire.
type fileInfo struct {
	Name     string
	IsDir    bool
	Size     int64
	FileMode string
	ModTime  time.Time
	// ContentType follows from the first bytes of a regular file. Lists do not have it.
	ContentType string `json:",omitempty"`
}

func infoOf(e allocdir.Entry) fileInfo {
	return fileInfo{Name: e.Name, IsDir: e.Info.IsDir(), Size: e.Info.Size(), FileMode: e.Info.Mode().String(), ModTime: e.Info.ModTime()}
}

// target returns the allocation and the path of a request for files.
func target(r *http.Request) (alloc, name string, q *query) {
	q = queryOf(r)
	return r.PathValue("alloc"), q.text("path"), q
}

// listFiles answers with the entries of a folder.
func (h *reader) listFiles(w http.ResponseWriter, r *http.Request) error {
	alloc, name, q := target(r)
	if q.err != nil {
		return q.err
	}
	entries, err := h.options.Dirs.ReadDir(alloc, name, maxEntries)
	if err != nil {
		return refuseFile(alloc, name, err)
	}
	all := make([]fileInfo, 0, len(entries))
	for _, e := range entries {
		all = append(all, infoOf(e))
	}
	return answerJSON(w, all)
}

// statFile answers with a description of a file or a folder.
func (h *reader) statFile(w http.ResponseWriter, r *http.Request) error {
	alloc, name, q := target(r)
	if q.err != nil {
		return q.err
	}
	entry, err := h.options.Dirs.Stat(alloc, name)
	if err != nil {
		return refuseFile(alloc, name, err)
	}
	info := infoOf(entry)
	if entry.Info.Mode().IsRegular() {
		if info.ContentType, err = h.contentType(alloc, name); err != nil {
			return err
		}
	}
	return answerJSON(w, info)
}

func (h *reader) contentType(alloc, name string) (string, error) {
	file, err := h.options.Dirs.OpenFile(alloc, name)
	if err != nil {
		return "", refuseFile(alloc, name, err)
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", refuseFile(alloc, name, err)
	}
	return http.DetectContentType(head[:n]), nil
}

// cat answers with a whole file.
func (h *reader) cat(w http.ResponseWriter, r *http.Request) error {
	return h.part(w, r, 0, 0)
}

// readAt answers with a part of a file.
func (h *reader) readAt(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	offset, limit := q.offset(), q.bytes("limit")
	if q.err != nil {
		return q.err
	}
	return h.part(w, r, offset, limit)
}

// part sends a part of a file. A limit of zero or less is none. What is appended meanwhile is not sent: a
// file that grows faster than its reader reads would have no end.
func (h *reader) part(w http.ResponseWriter, r *http.Request, offset, limit int64) error {
	file, info, err := h.open(r)
	if err != nil {
		return err
	}
	defer file.Close()
	length := max(0, info.Size()-offset)
	if limit > 0 {
		length = min(length, limit)
	}
	f := newSender(w, true)
	defer f.end()
	return h.copyTo(f, io.NewSectionReader(file, offset, length))
}

func (h *reader) open(r *http.Request) (*allocdir.File, fs.FileInfo, error) {
	alloc, name, q := target(r)
	if q.err != nil {
		return nil, nil, q.err
	}
	file, err := h.options.Dirs.OpenFile(alloc, name)
	if err != nil {
		return nil, nil, refuseFile(alloc, name, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // it was only read
		return nil, nil, refuseFile(alloc, name, err)
	}
	return file, info, nil
}

// copyTo sends all of a source. The answer has begun.
func (h *reader) copyTo(f *sender, source io.Reader) error {
	p := h.piece()
	defer h.pieces.Put(p)
	for {
		n, err := source.Read(p.data)
		if n > 0 {
			if err := f.data(p, n, "", 0); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return f.begin()
		}
		if err != nil {
			return f.broken(err)
		}
	}
}

// refuseFile returns the answer to an error of a file.
func refuseFile(alloc, name string, err error) error {
	status := http.StatusInternalServerError
	for _, known := range []struct {
		err    error
		status int
	}{
		{allocdir.ErrNoAlloc, http.StatusNotFound}, {fs.ErrNotExist, http.StatusNotFound},
		{allocdir.ErrRefused, http.StatusForbidden}, {allocdir.ErrOutside, http.StatusForbidden}, {fs.ErrPermission, http.StatusForbidden},
		{allocdir.ErrFolder, http.StatusBadRequest}, {allocdir.ErrNoFolder, http.StatusBadRequest}, {allocdir.ErrSpecial, http.StatusBadRequest},
		{allocdir.ErrTooLong, http.StatusBadRequest}, {allocdir.ErrTooMany, http.StatusBadRequest},
	} {
		if errors.Is(err, known.err) {
			status, err = known.status, known.err
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(status, fmt.Sprintf("there is no file %q in allocation %q", shorten(name), shorten(alloc)))
	case errors.Is(err, allocdir.ErrTooMany):
		return refuse(status, fmt.Sprintf("%q in allocation %q: the folder has more than %d entries, which are too many to list", shorten(name), shorten(alloc), maxEntries))
	}
	return refuse(status, fmt.Sprintf("%q in allocation %q: %v", shorten(name), shorten(alloc), err))
}

// shorten keeps an answer short that repeats what the caller sent.
func shorten(text string) string {
	const most = 256
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
