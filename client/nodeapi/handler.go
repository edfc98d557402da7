package nodeapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

// Options configure a [Handler].
type Options struct {
	// Logger gets a line for each request that changes a task. Nil: no logs.
	Logger *slog.Logger
	// Dirs are the folders of the node's allocations, Roster has its tasks, and Host measures the
	// machine. If one is nil, requests for files, logs and statistics answer 501.
	Dirs   *allocdir.Folders
	Roster Roster
	Host   func(context.Context) (*hoststats.Sample, error)
	// Devices measures the devices of the node, as far as their plugins answer before the context ends.
	// Nil: there are none.
	Devices func(context.Context) []device.GroupStats
	// Tasks acts on tasks. Nil: these requests answer 501.
	Tasks Tasks
	// Checks has the states of checks. Nil: these requests answer 501.
	Checks Checks
	// Storage calls controllers of storage plugins. Nil: these requests answer 501.
	Storage Storage
	// Data has the data that ended allocations keep. Nil: these requests answer 501.
	Data Data
}

// Handler answers requests. It starts no goroutine that outlives a request.
type Handler struct {
	options Options
	mux     *http.ServeMux
	// execs holds a value for each command of an operator that runs.
	execs chan struct{}
}

var _ http.Handler = (*Handler)(nil)

// New returns a handler.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Devices == nil {
		o.Devices = func(context.Context) []device.GroupStats { return nil }
	}
	h := &Handler{options: o, mux: http.NewServeMux(), execs: make(chan struct{}, MaxExecs)}
	newReader(o).route(h)
	h.routeTasks()
	h.routeStorage()
	h.routeData()
	return h
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

func answerJSON(w http.ResponseWriter, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(body)
	return err
}
