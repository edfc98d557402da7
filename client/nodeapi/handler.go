package nodeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/watch"
)

// Options configure a [Handler].
type Options struct {
	// Logger gets a line for each request that changes a task. Nil: no logs.
	Logger *slog.Logger
	// Dirs are the folders of the node's allocations, and Tasks knows its tasks. Both are required.
	Dirs  *allocdir.Folders
	Tasks Tasks
	// Host measures the machine; required.
	Host func(context.Context) (*hoststats.Sample, error)
}

// Handler answers requests. It starts no goroutine that outlives a request.
type Handler struct {
	options Options
	mux     *http.ServeMux
	// reading has a value for each request that reads files or measures.
	reading chan struct{}
	watcher watch.Watcher
	// pieces are free ones.
	pieces sync.Pool
}

// maxReading bounds the requests that read files or measure at the same time.
const maxReading = 1024

var _ http.Handler = (*Handler)(nil)

// New returns a handler.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{options: o, mux: http.NewServeMux(), reading: make(chan struct{}, maxReading)}
	h.handle("GET /v1/client/fs/ls/{alloc}", h.reads(h.list))
	h.handle("GET /v1/client/fs/stat/{alloc}", h.reads(h.stat))
	h.handle("GET /v1/client/fs/cat/{alloc}", h.reads(h.cat))
	h.handle("GET /v1/client/fs/readat/{alloc}", h.reads(h.readAt))
	h.handle("GET /v1/client/fs/stream/{alloc}", h.reads(h.stream))
	h.handle("GET /v1/client/fs/logs/{alloc}", h.reads(h.logs))
	h.handle("GET /v1/client/allocation/{alloc}/stats", h.reads(h.usage))
	h.handle("GET /v1/client/stats", h.reads(h.host))
	return h
}

// reads bounds the requests that read at the same time.
func (h *Handler) reads(answer func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet { // HEAD would follow a file and send nothing.
			return refuse(http.StatusMethodNotAllowed, "only GET reads")
		}
		select {
		case h.reading <- struct{}{}:
		default:
			return refuse(http.StatusTooManyRequests, fmt.Sprintf("the node answers %d requests for files, logs and statistics, and takes no more", maxReading))
		}
		defer func() { <-h.reading }()
		return answer(w, r)
	}
}

// watch returns a channel that receives a value when a file of the folder changes, and the end of the
// watch. Without room for a watch, the reader sees changes when it sends its next empty frame.
func (h *Handler) watch(dir *os.Root, concerns func(name string) bool) (changed <-chan struct{}, stop func()) {
	user, err := h.watcher.Watch(dir, concerns)
	if err != nil {
		h.options.Logger.Warn("a file is followed with delays: the kernel does not watch it", "error", err)
		return nil, func() {}
	}
	return user.Changed, user.Close
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// handle registers a handler that returns why it refuses.
func (h *Handler) handle(pattern string, answer func(w http.ResponseWriter, r *http.Request) error) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		err := answer(w, r)
		if broken, is := errors.AsType[*interrupted](err); is {
			h.options.Logger.Warn("an answer ends early", "path", r.URL.Path, "error", broken.err)
			panic(http.ErrAbortHandler) // The caller must not take what it has for the whole.
		}
		if err != nil && !errors.Is(err, errGone) && !errors.Is(err, errDeleted) {
			writeError(w, err)
		}
	})
}

// refusal is an error with the status of the answer.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// refuse returns an error whose text the caller sees.
func refuse(status int, text string) error { return &refusal{status, text} }

// writeError answers with the text of an error. An error that is no refusal has status 500.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if why, is := errors.AsType[*refusal](err); is {
		status = why.status
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(err.Error()))
}

// answerJSON answers with a value.
func answerJSON(w http.ResponseWriter, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}
