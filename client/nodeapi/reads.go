package nodeapi

import (
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/internal/watch"
)

// maxReading bounds the requests of each kind that read files or measure at the same time: those that may
// follow a file, and the others. Followers that stay would leave no room for the others.
const maxReading = 1024

// reader answers requests for files, logs and statistics.
type reader struct {
	options Options
	// following has a value for each request that may follow a file, and reading one for each other.
	following, reading chan struct{}
	watcher            watch.Watcher
	// pieces are the pieces that no read uses.
	pieces sync.Pool
}

func newReader(o Options) *reader {
	return &reader{options: o, following: make(chan struct{}, maxReading), reading: make(chan struct{}, maxReading)}
}

// route registers the requests that the reader answers.
func (h *reader) route(to *Handler) {
	to.handle("GET /v1/client/fs/ls/{alloc}", h.reads(h.reading, h.listFiles))
	to.handle("GET /v1/client/fs/stat/{alloc}", h.reads(h.reading, h.statFile))
	to.handle("GET /v1/client/fs/cat/{alloc}", h.reads(h.reading, h.cat))
	to.handle("GET /v1/client/fs/readat/{alloc}", h.reads(h.reading, h.readAt))
	to.handle("GET /v1/client/fs/stream/{alloc}", h.reads(h.following, h.stream))
	to.handle("GET /v1/client/fs/logs/{alloc}", h.reads(h.following, h.logs))
	to.handle("GET /v1/client/allocation/{alloc}/stats", h.reads(h.reading, h.usage))
	to.handle("GET /v1/client/stats", h.reads(h.reading, h.host))
}

// reads bounds the requests that read at the same time. The channel has a value for each.
func (h *reader) reads(bound chan struct{}, answer func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet { // HEAD would follow a file and send nothing.
			return refuse(http.StatusMethodNotAllowed, "only GET reads")
		}
		if h.options.Dirs == nil || h.options.Roster == nil || h.options.Host == nil {
			return refuse(http.StatusNotImplemented, "this node does not serve files, logs and statistics")
		}
		select {
		case bound <- struct{}{}:
		default:
			return refuse(http.StatusTooManyRequests, fmt.Sprintf("the node already answers %d requests of this kind, its limit: retry later", maxReading))
		}
		defer func() { <-bound }()
		return answer(w, r)
	}
}

// watch returns a channel that receives a value when a file of the folder changes, and the end of the
// watch. Without room for a watch, the reader finds changes when it sends its next empty frame.
func (h *reader) watch(dir *os.Root, concerns func(name string) bool) (changed <-chan struct{}, stop func()) {
	user, err := h.watcher.Watch(dir, concerns)
	if err != nil {
		h.options.Logger.Warn("a file is followed with delays: the kernel does not watch it", "error", err)
		return nil, func() {}
	}
	return user.Changed, user.Close
}
