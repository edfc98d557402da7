package nodeapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Data has the data of ephemeral disks that ended allocations keep for their replacements. It is safe for
// concurrent use.
type Data interface {
	// Open opens folders of the data of an allocation, or all of them without names. It leaves out those that do
	// not exist. The caller calls end when the copy has ended. The error wraps [ErrUnknown] if the node does not
	// have the data and never will, and [ErrState] if the allocation has not ended.
	Open(alloc string, folders []string) (sources []datacopy.Source, end func(), err error)
}

const (
	// maxDataFolders bounds the folders that a request names: one for each task.
	maxDataFolders = 10_000
	// dataRetry is when a request that must wait may be sent again, in seconds.
	dataRetry = 5
	// dataStall is how long a caller may take nothing of the data. Then other copies may run.
	dataStall = time.Minute
)

// routeData registers the request for data. It is for servers alone: the route of the HTTP API with this path is for
// the client that receives the data.
func (h *Handler) routeData() {
	copying := make(chan struct{}, 1)
	h.handle("GET /v1/client/allocation/{alloc}/data", func(w http.ResponseWriter, r *http.Request) error {
		q := queryOf(r)
		folders, from := q.values[wire.DataFolder], datacopy.Position{Path: q.text(wire.DataAfter), Offset: q.bytes(wire.DataOffset)}
		if from.Offset < 0 {
			q.refuse("%s: it is negative", wire.DataOffset)
		}
		if len(folders) > maxDataFolders {
			q.refuse("%s: there are more than %d", wire.DataFolder, maxDataFolders)
		}
		switch {
		case r.Method != http.MethodGet:
			return refuse(http.StatusMethodNotAllowed, "only GET reads")
		case q.err != nil:
			return q.err
		case h.options.Data == nil:
			return refuse(http.StatusNotImplemented, "this node does not keep data")
		}
		select {
		case copying <- struct{}{}:
			defer func() { <-copying }()
		default:
			return waits(w, "the node sends the data of another allocation first")
		}
		sources, end, err := h.options.Data.Open(r.PathValue("alloc"), folders)
		switch {
		case errors.Is(err, ErrUnknown):
			return refuse(http.StatusGone, err.Error())
		case errors.Is(err, ErrState):
			return waits(w, err.Error())
		case err != nil:
			return err
		}
		defer end()
		w.Header().Set(wire.DataSource, r.PathValue("alloc"))
		w.Header().Set("Content-Type", "application/octet-stream")
		w.WriteHeader(http.StatusOK)
		to := &dataWriter{w: w, control: http.NewResponseController(w)}
		defer to.end()
		if err := to.flush(); err != nil {
			return err
		}
		if err := datacopy.Send(r.Context(), to, sources, from); err != nil {
			return &interrupted{err}
		}
		return to.flush()
	})
}

// waits refuses a request that may be sent again later.
func waits(w http.ResponseWriter, why string) error {
	w.Header().Set("Retry-After", strconv.Itoa(dataRetry))
	return refuse(http.StatusServiceUnavailable, why)
}

// dataWriter writes an answer to a caller that must take it.
type dataWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (d *dataWriter) Write(p []byte) (int, error) {
	_ = d.control.SetWriteDeadline(time.Now().Add(dataStall)) // not all connections have deadlines
	return d.w.Write(p)
}

func (d *dataWriter) flush() error {
	if err := d.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errGone
	}
	return nil
}

func (d *dataWriter) end() { _ = d.control.SetWriteDeadline(time.Time{}) }
