package nodeapi_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
)

// The compatible Go client lists, describes and reads files.
func TestFiles(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/page.html", "<html>hello</html>")
	fs := n.client().AllocFS()

	top, _, err := fs.List(alloc("a"), "/", nil)
	must.NoError(t, err)
	var names []string
	for _, f := range top {
		must.True(t, f.IsDir)
		names = append(names, f.Name)
	}
	must.Eq(t, []string{"alloc", "db", "web"}, names)
	empty, _, err := fs.List(alloc("a"), "alloc/data", nil)
	must.NoError(t, err)
	must.NotNil(t, empty)
	must.SliceEmpty(t, empty)

	info, _, err := fs.Stat(alloc("a"), "web/local/page.html", nil)
	must.NoError(t, err)
	must.Eq(t, "page.html", info.Name)
	must.Eq(t, int64(18), info.Size)
	must.Eq(t, "-rw-------", info.FileMode)
	must.Eq(t, "text/html; charset=utf-8", info.ContentType)

	read := func(r io.ReadCloser, err error) string {
		must.NoError(t, err)
		defer r.Close()
		content, err := io.ReadAll(r)
		must.NoError(t, err)
		return string(content)
	}
	must.Eq(t, "<html>hello</html>", read(fs.Cat(alloc("a"), "web/local/page.html", nil)))
	must.Eq(t, "hello", read(fs.ReadAt(alloc("a"), "web/local/page.html", 6, 5, nil)))
	must.Eq(t, "</html>", read(fs.ReadAt(alloc("a"), "web/local/page.html", 11, 0, nil)))
	must.Eq(t, "", read(fs.ReadAt(alloc("a"), "web/local/page.html", 99, -1, nil)))
}

// A browser does not take a file for a page.
func TestFiles_neverAPage(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/page.html", "<script>")
	answer, err := n.server.Client().Get(n.server.URL + "/v1/client/fs/cat/a?path=web/local/page.html")
	must.NoError(t, err)
	must.NoError(t, answer.Body.Close())
	must.Eq(t, "text/plain; charset=utf-8", answer.Header.Get("Content-Type"))
	must.Eq(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
}

// Each refusal has a status and a sentence.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/file", "x")
	n.put("web/secrets/token", "secret")
	n.put("alloc/logs/.web.keeper", "secret")
	must.NoError(t, os.Symlink("../secrets/token", filepath.Join(n.dirs.Alloc("a"), "web/local/link")))
	must.NoError(t, os.Symlink("/etc/passwd", filepath.Join(n.dirs.Alloc("a"), "web/local/passwd")))
	must.NoError(t, syscall.Mkfifo(filepath.Join(n.dirs.Alloc("a"), "web/local/fifo"), 0o600))
	for _, c := range []struct {
		path   string
		status int
		output string
	}{
		{"fs/ls/b?path=/", 404, "the node has no files of this allocation"},
		{"fs/ls/..%2Fa?path=/", 404, "the node has no files of this allocation"},
		{"fs/ls/a?path=web/none", 404, `there is no file "web/none" in allocation "a"`},
		{"fs/ls/a?path=web/local/file", 400, "it is not a folder"},
		{"fs/ls/a?path=web/secrets", 403, "secrets of tasks and files of the client cannot be read"},
		{"fs/ls/a?path=web/private", 403, "cannot be read"},
		{"fs/ls/a?path=%zz", 400, "the query is malformed"},
		{"fs/stat/a?path=web/local/link", 403, "cannot be read"},
		{"fs/stat/a?path=web/local/passwd", 403, "the path leads out of the allocation"},
		{"fs/cat/a?path=../b/x", 403, "the path leads out of the allocation"},
		{"fs/cat/a?path=alloc/logs/.web.keeper", 403, "cannot be read"},
		{"fs/cat/a?path=web/local", 400, "it is a folder"},
		{"fs/cat/a", 400, "it is a folder"},
		{"fs/cat/a?path=web/local/fifo", 400, "it is neither a file nor a folder"},
		{"fs/cat/a?path=" + strings.Repeat("x", 9000), 400, "the path is too long"},
		{"fs/cat/a?path=%00", 400, "the path is too long"},
		{"fs/readat/a?path=web/local/file&offset=x", 400, `offset: "x" is not a number of bytes`},
		{"fs/readat/a?path=web/local/file&offset=-1", 400, "offset: it is negative"},
		{"fs/readat/a?path=web/local/file&limit=1.5", 400, `limit: "1.5" is not a number of bytes`},
		{"fs/stream/a?path=web/local/fifo", 400, "it is neither a file nor a folder"},
		{"fs/stream/a?path=web/local/file&origin=middle", 400, `origin: "middle" is neither start nor end`},
		{"fs/stream/a?path=web/local/file&follow=maybe", 400, `follow: "maybe" is neither true nor false`},
		{"fs/stream/a?path=web/local/file&offset=99999999999999999999", 400, "not a number of bytes"},
		{"fs/logs/b?task=web&type=stdout", 404, `the node does not have allocation "b"`},
		{"fs/logs/a?task=cache&type=stdout", 404, `allocation "a" has no task "cache"`},
		{"fs/logs/a?task=web&type=stdin", 400, `type: "stdin" is neither stdout nor stderr`},
		{"fs/logs/a?type=stdout", 400, "task: it is missing"},
		{"fs/logs/a?task=web&type=stdout&file=db.stdout.0", 400, `"db.stdout.0" is not a file of this log`},
		{"fs/logs/a?task=web&type=stdout&file=../x", 400, "is not a file of this log"},
		{"fs/logs/a?task=web&type=stdout", 404, `task "web" has not started yet: it has no stdout log`},
		{"fs/logs/a?task=old&type=stderr&follow=true", 404, `task "old" has ended and has no stderr log`},
		{"allocation/b/stats", 404, `the node does not have allocation "b"`},
		{"allocation/a/stats?task=x", 404, `allocation "a" has no task "x"`},
		{"allocation/a/stats?task=old", 400, `task "old" does not run`},
	} {
		status, body := n.get("/v1/client/" + c.path)
		must.Eq(t, c.status, status, must.Sprint(c.path, body))
		must.StrContains(t, body, c.output)
		must.Less(t, 1000, len(body))
	}
	answer, err := n.server.Client().Head(n.server.URL + "/v1/client/fs/stream/a?path=web/local/file")
	must.NoError(t, err)
	must.NoError(t, answer.Body.Close())
	must.Eq(t, http.StatusMethodNotAllowed, answer.StatusCode)
}

func TestFiles_tooMany(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	dir := filepath.Join(n.dirs.Alloc("a"), "alloc/data")
	must.NoError(t, os.WriteFile(filepath.Join(dir, "first"), nil, 0o600))
	for i := range 10_000 { // links are quick to make
		must.NoError(t, os.Link(filepath.Join(dir, "first"), filepath.Join(dir, fmt.Sprint(i))))
	}
	status, body := n.get("/v1/client/fs/ls/a?path=alloc/data")
	must.Eq(t, 400, status)
	must.StrContains(t, body, "more than 10000 entries")
	must.NoError(t, os.Remove(filepath.Join(dir, "7")))
	status, body = n.get("/v1/client/fs/ls/a?path=alloc/data")
	must.Eq(t, 200, status)
	must.Eq(t, 10_000, strings.Count(body, `"Name"`))
}

// A file that grows faster than it is read has an end.
func TestFiles_growing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/file", strings.Repeat("x", 1<<20))
	file, err := os.OpenFile(filepath.Join(n.dirs.Alloc("a"), "web/local/file"), os.O_WRONLY|os.O_APPEND, 0)
	must.NoError(t, err)
	r, err := n.client().AllocFS().Cat(alloc("a"), "web/local/file", nil)
	must.NoError(t, err)
	defer r.Close()
	read := 0
	for piece := make([]byte, 4096); ; {
		got, err := r.Read(piece)
		read += got
		if err == io.EOF {
			break
		}
		must.NoError(t, err)
		_, err = file.Write(piece)
		must.NoError(t, err)
	}
	must.Eq(t, 1<<20, read)
	must.NoError(t, file.Close())
}

// The node answers a bounded number of followers at the same time. Followers took the room of short
// reads: the node then listed no folder and measured nothing.
func TestFiles_busy(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/file", "x")
	first := n.follow("/v1/client/fs/stream/a?path=web/local/file")
	for range 1023 {
		n.follow("/v1/client/fs/stream/a?path=web/local/file")
	}
	const another = "/v1/client/fs/stream/a?path=web/local/file&follow=false"
	status, body := n.get(another)
	must.Eq(t, http.StatusTooManyRequests, status)
	must.StrContains(t, body, "already answers")
	for _, short := range []string{"ls/a?path=/", "stat/a?path=web/local/file", "cat/a?path=web/local/file"} {
		status, body = n.get("/v1/client/fs/" + short)
		must.Eq(t, http.StatusOK, status, must.Sprint(body))
	}
	first.end()
	for status = http.StatusTooManyRequests; status != http.StatusOK; {
		status, _ = n.get(another)
	}
}

//race:skip one goroutine
func FuzzQuery(f *testing.F) {
	n := newNode(f)
	n.put("web/secrets/token", "secret")
	n.put("alloc/logs/web.stdout.0", "log")
	for _, seed := range []string{"path=web/secrets/token", "task=web&type=stdout&offset=1&origin=end", "file=web.stdout.9223372036854775807&task=web&type=stdout&plain=1", "path=%2e%2e", ";", "offset=9223372036854775807&path=alloc/logs/web.stdout.0&limit=9223372036854775807"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, route := range []string{"ls", "stat", "cat", "readat", "stream", "logs"} {
			answer := n.serve(t.Context(), "/v1/client/fs/"+route+"/a", "follow=false&"+query)
			must.NotEq(t, "secret", answer.Body.String())
			must.StrNotContains(t, answer.Body.String(), "c2VjcmV0")
			must.Less(t, 500, answer.Code)
		}
	})
}
