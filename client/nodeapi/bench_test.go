package nodeapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// followers connects callers that have the head of their answers and read no further.
func (n *node) followers(count int) []net.Conn {
	n.Helper()
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := net.Dial("tcp", n.server.Listener.Addr().String())
		must.NoError(n, err)
		n.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: n\r\n\r\n", followWeb)
		must.NoError(n, err)
		answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		must.NoError(n, err)
		must.Eq(n, http.StatusOK, answer.StatusCode)
		conns[i] = conn
	}
	return conns
}

// inUse is the memory of this process, without what the kernel holds for it.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// A thousand followed logs need little memory while the task is quiet.
func TestFollowers_quiet(t *testing.T) {
	n := newNode(t)
	n.log("web", tasklog.Limits{})
	before := inUse()
	const count = 1000
	n.followers(count)
	each := (inUse() - before) / count
	t.Logf("%d KiB for each of %d followers", each>>10, count)
	must.Less(t, 64<<10, each)
}

// Callers that take nothing of what a task prints need a bounded amount.
func TestFollowers_stalled(t *testing.T) {
	n := newNode(t)
	w := n.log("web", tasklog.Limits{MaxFiles: 2, MaxFileSize: 16 << 20})
	before := inUse()
	const count = 100
	conns := n.followers(count)
	for range 12 { // 12 MiB: more than a connection takes
		n.print(w, "%s\n", strings.Repeat("x", 1<<20))
	}
	for _, conn := range conns {
		_, err := io.CopyN(io.Discard, conn, 64<<10)
		must.NoError(t, err)
	}
	each := (inUse() - before) / count
	t.Logf("%d KiB for each of %d followers", each>>10, count)
	must.Less(t, 192<<10, each)
}

// BenchmarkFollow_line measures the time from a line that a task prints to its frame at the caller.
func BenchmarkFollow_line(b *testing.B) {
	n := newNode(b)
	w := n.log("web", tasklog.Limits{})
	s := n.follow(followWeb)
	for b.Loop() {
		n.print(w, "a line\n")
		s.text(7)
	}
}

// BenchmarkFollow_flood measures how much of a task's output reaches a caller that reads as fast as it
// can, while the task prints all the time. The log is 10 files of 10 MiB.
func BenchmarkFollow_flood(b *testing.B) {
	n := newNode(b)
	w := n.log("web", tasklog.Limits{})
	s := n.follow(followWeb)
	piece := strings.Repeat(strings.Repeat("x", 99)+"\n", 160)
	var printed atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = w.Append([]byte(piece))
				printed.Add(int64(len(piece)))
			}
		}
	}()
	var events int64
	for b.Loop() {
		for got := 0; got < 1<<20; {
			f := s.next()
			got += len(f.Data)
			if f.FileEvent != "" {
				events++
			}
		}
	}
	close(stop)
	<-stopped
	b.SetBytes(1 << 20)
	b.ReportMetric(float64(printed.Load())/b.Elapsed().Seconds()/1e6, "printed-MB/s")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "removals/s")
}

// BenchmarkFollow_end measures a log that ended, from the request to its end: the frames of 1 MiB.
func BenchmarkFollow_end(b *testing.B) {
	n := newNode(b)
	w := n.log("web", tasklog.Limits{})
	n.print(w, "%s", strings.Repeat("x", 1<<20))
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Dead: true})
	b.SetBytes(1 << 20)
	for b.Loop() {
		answer, err := n.server.Client().Get(n.server.URL + followWeb)
		must.NoError(b, err)
		decoder := json.NewDecoder(answer.Body)
		for got := 0; got < 1<<20; {
			var f api.StreamFrame
			must.NoError(b, decoder.Decode(&f))
			got += len(f.Data)
		}
		must.NoError(b, answer.Body.Close())
	}
}
