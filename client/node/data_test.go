package node

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
)

// moving are test servers that copy data: their requests for data go to a handler over HTTP.
type moving struct {
	*scripted
	http *httpServers
}

func (m *moving) Data(ctx context.Context, alloc cluster.AllocID, folders []string, from datacopy.Position) (io.ReadCloser, client.DataAnswer) {
	return m.http.Data(ctx, alloc, folders, from)
}

// newMoving returns a node whose servers answer requests for data with a handler.
func newMoving(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.api = &moving{w.servers, newServers(t, handler)}
	return w
}

// disk returns an allocation whose group migrates its data of at most a MiB.
func (w *world) disk(id, previous cluster.AllocID) *cluster.Allocation {
	a := w.alloc(id, `{}`)
	a.PreviousAllocation = previous
	a.Job.TaskGroups[0].EphemeralDisk = cluster.EphemeralDisk{SizeMB: 1, Migrate: true}
	return a
}

// give sends allocations to the node, as servers that move data.
func (w *world) give(index uint64, allocs ...*cluster.Allocation) {
	w.Helper()
	w.servers.feed <- client.Changes{ClusterID: "c", Index: index, Version: cluster.VersionOfData, Allocs: allocs}
}

func (w *world) path(alloc, name string) string {
	return filepath.Join(w.config.DataDir, allocsDir, alloc, name)
}

func (w *world) awaitData(alloc cluster.AllocID, state cluster.DataState) *cluster.DataMove {
	w.Helper()
	w.await(func(s *scripted) bool { return s.reported[alloc].DataIn.StateOf() == state })
	var in *cluster.DataMove
	w.servers.set(func() { in = w.servers.reported[alloc].DataIn })
	return in
}

// newSource returns a node with an ended allocation p that keeps its data.
func newSource(t *testing.T) *world {
	t.Helper()
	w := newMoving(t, responds(http.StatusGone, ""))
	w.begin()
	w.awaitMock()
	p := w.disk("p", "")
	w.give(2, p)
	w.awaitStatus("p", cluster.ClientRunning)
	must.NoError(t, os.MkdirAll(w.path("p", "alloc/data/deep"), 0o750))
	must.NoError(t, os.WriteFile(w.path("p", "alloc/data/deep/big"), []byte(strings.Repeat("0123456789abcdef", 64_000)), 0o640))
	must.NoError(t, os.WriteFile(w.path("p", "t/local/small"), []byte("small"), 0o600))
	must.NoError(t, os.WriteFile(w.path("p", "t/secrets/key"), []byte("secret"), 0o600))
	must.NoError(t, os.Symlink("deep/big", w.path("p", "alloc/data/link")))
	stopped := p.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 3
	w.give(3, stopped)
	w.awaitStatus("p", cluster.ClientComplete)
	w.servers.set(func() { must.True(t, w.servers.reported["p"].DataOut.Kept()) })
	return w
}

// proxy answers the requests of a target with the data of allocation p of a source. Each answer ends after some bytes,
// or not.
func proxy(source *httptest.Server, cuts ...int64) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		limit := int64(1 << 40)
		if len(cuts) > 0 {
			limit, cuts = cuts[0], cuts[1:]
		}
		mu.Unlock()
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, source.URL+strings.Replace(r.URL.Path, "/r/", "/p/", 1)+"?"+r.URL.RawQuery, nil)
		if err != nil {
			panic(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		for _, name := range []string{wire.DataSource, "Retry-After"} {
			if value := answer.Header.Get(name); value != "" {
				w.Header().Set(name, value)
			}
		}
		w.WriteHeader(answer.StatusCode)
		if n, _ := io.Copy(w, io.LimitReader(answer.Body, limit)); n == limit {
			panic(http.ErrAbortHandler)
		}
	}
}

// The data of an allocation moves to its replacement on another node, over connections that are cut.
func TestData_moves(t *testing.T) {
	t.Parallel()
	source := newSource(t)
	api := source.serve()
	target := newMoving(t, proxy(api, 100, 300_000, 5_000))
	target.begin()
	target.awaitMock()
	target.give(2, target.disk("r", "p"))
	in := target.awaitData("r", cluster.DataCopied)
	must.Eq(t, cluster.AllocID("p"), in.Peer)
	must.Eq(t, 1_024_005, in.Bytes)
	target.awaitStatus("r", cluster.ClientRunning)
	content, err := os.ReadFile(target.path("r", "alloc/data/link"))
	must.NoError(t, err)
	must.Eq(t, strings.Repeat("0123456789abcdef", 64_000), string(content))
	info, err := os.Stat(target.path("r", "alloc/data/deep/big"))
	must.NoError(t, err)
	must.Eq(t, 0o640, info.Mode())
	content, err = os.ReadFile(target.path("r", "t/local/small"))
	must.NoError(t, err)
	must.Eq(t, "small", string(content))
	must.False(t, exists(target.path("r", "t/secrets/key")))
	must.False(t, exists(target.path("r", ".incoming")))
	must.True(t, exists(source.path("p", "t/local/small")), must.Sprint("the source keeps the data until its row has the end"))

	copied := source.disk("p", "")
	copied.ClientStatus, copied.DesiredStatus, copied.AllocModifyIndex = cluster.ClientComplete, cluster.DesiredStop, 9
	copied.DataOut = &cluster.DataMove{State: cluster.DataCopied, Peer: "r"}
	source.give(9, copied)
	source.eventually("the data is no longer kept", func() bool {
		status, _ := get(t, api.URL+"/v1/client/allocation/p/data")
		return status == http.StatusGone
	})
	source.stop()
	target.stop()
}

// Both clients restart in the middle. What has arrived before is removed, and the copy begins again.
func TestData_restarts(t *testing.T) {
	t.Parallel()
	source := newSource(t)
	api := source.serve()
	began, hold := make(chan struct{}, 10), make(chan struct{})
	target := newMoving(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		select {
		case <-hold:
			proxy(api)(w, r)
		default:
			w.Header().Set(wire.DataSource, "p")
			_ = datacopy.Send(r.Context(), &endless{w, r.Context()}, nil, datacopy.Position{})
		}
	})
	target.begin()
	target.awaitMock()
	target.give(2, target.disk("r", "p"))
	<-began
	target.awaitData("r", cluster.DataCopying)
	must.True(t, exists(target.path("r", ".incoming")))
	target.stop()
	must.True(t, exists(target.path("r", ".incoming")))
	source.stop()
	source.begin()
	api = source.serve()
	close(hold)
	target.begin()
	must.False(t, exists(target.path("r", ".incoming")))
	target.give(2, target.disk("r", "p"))
	target.awaitData("r", cluster.DataCopied)
	target.awaitStatus("r", cluster.ClientRunning)
	must.True(t, exists(target.path("r", "alloc/data/deep/big")))
	target.stop()
	source.stop()
}

// endless writes nothing, and waits until the request ends.
type endless struct {
	http.ResponseWriter
	ended context.Context
}

func (e *endless) Write([]byte) (int, error) {
	e.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(e.ResponseWriter).Flush()
	<-e.ended.Done()
	return 0, e.ended.Err()
}

// What a hostile or broken sender sends does not reach the tasks. They start without data, and nothing is left.
func TestData_hostile(t *testing.T) {
	t.Parallel()
	entry := func(h tar.Header, content string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { writeStream(w, h, content) }
	}
	for name, c := range map[string]struct {
		send http.HandlerFunc
		why  string
	}{
		"gone":           {responds(http.StatusGone, "the allocation is lost\n"), "the allocation is lost"},
		"too large":      {entry(tar.Header{Name: "alloc/data/x", Typeflag: tar.TypeReg, Mode: 0o600}, strings.Repeat("x", 1<<20+1)), "larger than the limit"},
		"another folder": {entry(tar.Header{Name: "t/secrets/x", Typeflag: tar.TypeReg, Mode: 0o600}, "x"), "no folder that was requested"},
		"above":          {entry(tar.Header{Name: "alloc/data/../../x", Typeflag: tar.TypeReg, Mode: 0o600}, "x"), "invalid"},
		"absolute":       {entry(tar.Header{Name: "/etc/x", Typeflag: tar.TypeReg, Mode: 0o600}, "x"), "invalid"},
		"a device":       {entry(tar.Header{Name: "alloc/data/x", Typeflag: tar.TypeChar, Mode: 0o600}, ""), "invalid"},
		"more than announced": {entry(tar.Header{
			Name: "alloc/data/x", Typeflag: tar.TypeReg, Mode: 0o600, PAXRecords: map[string]string{"NODEDRAIN.offset": "0", "NODEDRAIN.size": "2"},
		}, "xxx"), "invalid"},
		"a long name":        {entry(tar.Header{Name: "alloc/data/" + strings.Repeat("n", 256), Typeflag: tar.TypeReg, Mode: 0o600}, "x"), "invalid"},
		"a link to a secret": {entry(tar.Header{Name: "alloc/data/x", Typeflag: tar.TypeLink, Linkname: "t/secrets/key"}, ""), "no folder that was requested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMoving(t, c.send)
			w.begin()
			w.awaitMock()
			w.give(2, w.disk("r", "p"))
			in := w.awaitData("r", cluster.DataGivenUp)
			must.StrContains(t, in.Why, c.why)
			w.awaitStatus("r", cluster.ClientRunning)
			must.False(t, exists(w.path("r", ".incoming")))
			entries, err := os.ReadDir(w.path("r", "alloc/data"))
			must.NoError(t, err)
			must.SliceEmpty(t, entries)
			w.stop()
		})
	}
}

// The disk of the target has no room: the task starts without the data, and nothing is left of it.
func TestData_noRoom(t *testing.T) {
	t.Parallel()
	source := newSource(t)
	small := t.TempDir()
	tmpfs.Mount(t, small, "size=32m,mode=700")
	target := newMoving(t, proxy(source.serve()))
	target.config.DataDir = small
	target.begin()
	target.awaitMock()
	target.give(2, target.disk("r", "p"))
	must.StrContains(t, target.awaitData("r", cluster.DataGivenUp).Why, "the disk has no room for the data")
	target.awaitStatus("r", cluster.ClientRunning)
	must.False(t, exists(target.path("r", ".incoming")))
	must.True(t, exists(source.path("p", "t/local/small")))
	target.stop()
	source.stop()
}

// An ended allocation has filled the disk of the target: its folders are removed, and the data moves. If that cannot
// help, the servers get the reason of the wait, which the record cannot hold. Bugs: the disk stayed full, and for the
// servers the replacement waited for its predecessor.
func TestData_fullDisk(t *testing.T) {
	t.Parallel()
	source := newSource(t)
	small := t.TempDir()
	tmpfs.Mount(t, small, "size=128m,mode=700")
	target := newMoving(t, proxy(source.serve()))
	target.config.DataDir = small
	target.begin()
	target.awaitMock()
	old := target.alloc("old", `{"run_for": "1ms"}`)
	target.give(2, old)
	target.awaitStatus("old", cluster.ClientFailed) // a task of a service does not end
	fill := func(path string) {
		must.ErrorIs(t, os.WriteFile(path, make([]byte, 256<<20), 0o600), syscall.ENOSPC)
	}
	fill(target.path("old", "alloc/data/big"))
	target.give(3, target.disk("r", "p"))
	target.awaitData("r", cluster.DataCopied)
	target.awaitStatus("r", cluster.ClientRunning)
	must.False(t, exists(target.path("old", "")))

	filler := filepath.Join(small, "filler")
	fill(filler)
	target.give(4, target.disk("r2", "p"))
	target.await(func(s *scripted) bool {
		in := s.reported["r2"].DataIn
		return in.StateOf() == cluster.DataWaiting && in.Why == "the client cannot write its record to the disk, which is full"
	})
	must.NoError(t, os.Remove(filler))
	target.awaitStatus("r2", cluster.ClientRunning)
	target.stop()
	source.stop()
}

// Both allocations are on one node: no request is sent.
func TestData_onOneNode(t *testing.T) {
	t.Parallel()
	w := newSource(t)
	w.give(4, w.disk("r", "p"))
	in := w.awaitData("r", cluster.DataCopied)
	must.Eq(t, cluster.AllocID("p"), in.Peer)
	w.awaitStatus("r", cluster.ClientRunning)
	content, err := os.ReadFile(w.path("r", "t/local/small"))
	must.NoError(t, err)
	must.Eq(t, "small", string(content))
	must.False(t, exists(w.path("p", "t/local/small")))
	status, _ := get(t, w.serve().URL+"/v1/client/allocation/p/data")
	must.Eq(t, http.StatusGone, status)
	w.stop()
}

// The servers lose the replacement that has the data on the same node. The node sends the data from its folders, after
// its end.
func TestData_ofALostReplacement(t *testing.T) {
	t.Parallel()
	w := newSource(t)
	w.give(4, w.disk("r", "p"))
	w.awaitStatus("r", cluster.ClientRunning)
	at := w.serve().URL + "/v1/client/allocation/p/data?folder=t/local"
	status, _ := get(t, at)
	must.Eq(t, http.StatusGone, status)
	older := w.disk("p", "")
	older.ClientStatus, older.AllocModifyIndex = cluster.ClientRunning, 2
	w.servers.feed <- client.Changes{
		ClusterID: "c", Index: 2, Version: cluster.VersionOfData, All: true, Complete: true, Allocs: []*cluster.Allocation{older}, Known: []cluster.AllocID{"p"},
	}
	w.eventually("the data is sent", func() bool {
		status, body := get(t, at)
		if status == http.StatusServiceUnavailable {
			must.StrContains(t, body, `allocation "r", to which the data of allocation "p" has moved, has not ended`)
		}
		return status == http.StatusOK && strings.Contains(body, "t/local/small")
	})
	w.await(func(s *scripted) bool {
		return s.reported["p"].DataOut.Kept() && s.reported["r"].ClientStatus == cluster.ClientComplete
	})
	w.stop()
}

// A client receives one copy at a time. The others wait without an open stream.
func TestData_oneAtATime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, most := 0, 0
	began, end := make(chan string, 100), make(chan struct{})
	w := newMoving(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		began <- r.URL.Path
		select {
		case <-end:
			mu.Lock()
			open++
			most = max(most, open)
			mu.Unlock()
			_ = datacopy.Send(r.Context(), w, nil, datacopy.Position{})
			mu.Lock()
			open--
			mu.Unlock()
		case <-r.Context().Done():
		}
	})
	w.begin()
	w.awaitMock()
	w.give(2, w.disk("r1", "p1"), w.disk("r2", "p2"), w.disk("r3", "p3"))
	for range 3 {
		<-began
	}
	time.AfterFunc(100*time.Millisecond, func() { close(end) })
	for _, id := range []cluster.AllocID{"r1", "r2", "r3"} {
		w.awaitData(id, cluster.DataCopied)
	}
	mu.Lock()
	defer mu.Unlock()
	must.Eq(t, 1, most)
	w.stop()
}

// Two servers request data of one node at the same time: the turns are those of one server. The second copy waits,
// its client requests it again, and it begins when the first one has ended.
func TestData_twoServersAndOneSource(t *testing.T) {
	t.Parallel()
	source := newSource(t)
	q := source.disk("q", "")
	source.give(4, q)
	source.awaitStatus("q", cluster.ClientRunning)
	more := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // than the sockets hold
	must.NoError(t, os.WriteFile(source.path("q", "alloc/data/large"), more, 0o600))
	stopped := q.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 5
	source.give(5, stopped)
	source.awaitStatus("q", cluster.ClientComplete)
	api := source.serve()
	first, err := http.Get(api.URL + "/v1/client/allocation/q/data")
	must.NoError(t, err)
	must.Eq(t, http.StatusOK, first.StatusCode)

	requests := make(chan struct{}, 10_000)
	target := newMoving(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		proxy(api)(w, r)
	})
	target.begin()
	target.awaitMock()
	target.give(2, target.disk("r", "p"))
	for range 3 {
		<-requests
	}
	target.await(func(s *scripted) bool {
		in := s.reported["r"].DataIn
		return in.StateOf() == cluster.DataWaiting && strings.Contains(in.Why, "the node sends the data of another allocation first")
	})
	must.NoError(t, first.Body.Close())
	must.Eq(t, 1_024_005, target.awaitData("r", cluster.DataCopied).Bytes)
	target.awaitStatus("r", cluster.ClientRunning)
	target.stop()
	source.stop()
}

// A node answers requests for the data of an ended allocation only, one at a time.
func TestData_source(t *testing.T) {
	t.Parallel()
	w := newSource(t)
	w.give(4, w.disk("live", ""))
	w.awaitStatus("live", cluster.ClientRunning)
	at := w.serve().URL + "/v1/client/allocation/"
	for path, want := range map[string]int{
		"unknown/data": http.StatusGone, "p/data?offset=-1": http.StatusBadRequest, "p/data?offset=x": http.StatusBadRequest, "p/data?after=a%00b": http.StatusOK,
		"p/data?folder=t/secrets": http.StatusOK, "live/data": http.StatusServiceUnavailable, "p/data?folder=../../x": http.StatusOK,
	} {
		status, body := get(t, at+path)
		must.Eq(t, want, status, must.Sprint(path, ": ", body))
		must.StrNotContains(t, body, "secret\n")
	}
	answer, err := http.Get(at + "live/data")
	must.NoError(t, err)
	must.NoError(t, answer.Body.Close())
	must.NotEq(t, "", answer.Header.Get("Retry-After"))
	_, body := get(t, at+"p/data?folder=t/local")
	must.StrContains(t, body, "t/local/small")
	must.StrNotContains(t, body, "alloc/data/deep")

	// Bug: a node without the folders sent nothing, and the data counted as copied.
	must.NoError(t, os.RemoveAll(w.path("p", "")))
	status, body := get(t, at+"p/data")
	must.EqOp(t, http.StatusGone, status)
	must.StrContains(t, body, "are gone from the node")
	w.stop()
}

// The next client has the cluster version before its first answer, because a task may end before it.
func TestData_versionOnDisk(t *testing.T) {
	t.Parallel()
	w := newSource(t)
	w.stop()
	w.begin()
	must.Eq(t, cluster.VersionOfData, w.node.home.clusterVersion())
	w.stop()
}

// The statuses of the servers' answers.
func TestHTTPServers_data(t *testing.T) {
	t.Parallel()
	header := func(status int, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(name, value)
			responds(status, "because")(w, r)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    client.DataAnswer
	}{
		"gone":    {header(http.StatusGone, wire.DataSource, "p"), client.DataAnswer{Result: client.DataRefused, Why: "because", DataProgress: client.DataProgress{Source: "p"}}},
		"waits":   {header(http.StatusServiceUnavailable, "Retry-After", "5"), client.DataAnswer{Result: client.DataWaits, Why: "because"}},
		"stops":   {responds(http.StatusServiceUnavailable, "because"), client.DataAnswer{Result: client.DataUnreached, Why: "the server answers 503: because"}},
		"leader":  {responds(http.StatusInternalServerError, "No cluster leader"), client.DataAnswer{Result: client.DataUnreached, Why: "the server answers 500: No cluster leader"}},
		"node":    {responds(http.StatusBadGateway, "because"), client.DataAnswer{Result: client.DataFailed, Why: "the server answers 502: because"}},
		"unknown": {responds(http.StatusNotFound, "because"), client.DataAnswer{Result: client.DataFailed, Why: "the server answers 404: because"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, answer := newServers(t, c.handler).Data(t.Context(), "r", []string{"alloc/data"}, datacopy.Position{})
			must.Nil(t, stream)
			must.Eq(t, c.want, answer)
		})
	}
	s := newServers(t, func(w http.ResponseWriter, r *http.Request) {
		must.Eq(t, "secret", r.Header.Get("X-Nomad-Token"))
		_, _ = io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery)
	})
	stream, answer := s.Data(t.Context(), "r", []string{"alloc/data", "t/local"}, datacopy.Position{Path: "alloc/data/\xff&", Offset: 7})
	must.NotNil(t, stream, must.Sprint(answer))
	text, err := io.ReadAll(stream)
	must.NoError(t, err)
	must.Eq(t, "/v1/client/allocation/r/data?after=alloc%2Fdata%2F%FF%26&folder=alloc%2Fdata&folder=t%2Flocal&offset=7", string(text))
	must.NoError(t, stream.Close())

	_, answer = newServers(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).Data(t.Context(), "r", nil, datacopy.Position{})
	must.Eq(t, client.DataUnreached, answer.Result)
}

// writeStream writes a stream with one entry and a parent folder for it, without a check.
func writeStream(w io.Writer, h tar.Header, content string) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	h.Format = tar.FormatPAX
	if h.Typeflag == tar.TypeReg {
		h.Size = int64(len(content))
	}
	_ = writer.WriteHeader(&h)
	_, _ = io.WriteString(writer, content)
	_ = writer.Close()
	for {
		frame := archive.Next(256 << 10)
		head := binary.BigEndian.AppendUint32(nil, uint32(len(frame)))
		head = binary.BigEndian.AppendUint32(head, crc32.Checksum(frame, crc32.MakeTable(crc32.Castagnoli)))
		if _, err := w.Write(append(head, frame...)); err != nil || len(frame) == 0 {
			return
		}
	}
}
