package nodeapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

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
//
//race:skip it measures
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
//
//race:skip it measures
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
