package nodeapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

const followWeb = "/v1/client/fs/logs/a?task=web&type=stdout&follow=true"

// small makes a log rotate after a few lines.
func small() tasklog.Limits { return tasklog.Limits{MaxFiles: 3, MaxFileSize: 64} }

// readAll reads the frames of the compatible Go client to their end.
func readAll(t *testing.T, c *api.Client, follow bool, origin string, offset int64) string {
	t.Helper()
	cancel := make(chan struct{})
	frames, errs := c.AllocFS().Logs(alloc("a"), follow, "web", "stdout", origin, offset, cancel, nil)
	r := api.NewFrameReader(frames, errs, cancel)
	content, err := io.ReadAll(r)
	must.NoError(t, err)
	return string(content)
}

func TestLogs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.log("web", small())
	for i := range 5 {
		n.print(w, "line %024d\n", i)
	}
	all := ""
	for i := range 5 {
		all += fmt.Sprintf("line %024d\n", i)
	}
	c := n.client()
	must.Eq(t, all, readAll(t, c, false, "start", 0))
	must.Eq(t, all[100:], readAll(t, c, false, "start", 100))
	must.Eq(t, all[len(all)-40:], readAll(t, c, false, "end", 40))
	must.Eq(t, all, readAll(t, c, false, "end", 9999))
	must.Eq(t, "", readAll(t, c, false, "start", 9999))
	must.Eq(t, "", readAll(t, c, false, "end", 0))

	_, plain := n.get("/v1/client/fs/logs/a?task=web&type=stdout&plain=true&origin=end&offset=30")
	must.Eq(t, all[len(all)-30:], plain)
	// A log that ended is followed to its end.
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Dead: true})
	must.Eq(t, all, readAll(t, c, true, "start", 0))
}

// A line reaches its reader when the task prints it, and nothing is lost between files. The stream ends
// with the task.
func TestLogs_follow(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.log("web", small())
	n.print(w, "before\n")
	s := n.follow(followWeb)
	text, last := s.text(7)
	must.Eq(t, "before\n", text)
	must.Eq(t, api.StreamFrame{Offset: 7, Data: []byte("before\n"), File: "alloc/logs/web.stdout.0"}, last)
	for i := range 100 {
		line := fmt.Sprintf("line %024d\n", i)
		n.print(w, "%s", line)
		text, last = s.text(len(line))
		must.Eq(t, line, text)
	}
	must.Eq(t, "alloc/logs/web.stdout.50", last.File)
	n.print(w, "the end\n")
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Dead: true})
	text, _ = s.text(8)
	must.Eq(t, "the end\n", text)
	s.ends()
}

// A task that starts again has one log, and an allocation that the node has removed has none.
func TestLogs_restart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.log("web", small())
	n.print(w, "first\n")
	s := n.follow(followWeb)
	s.text(6)
	n.tasks.set("a", nodeapi.TaskState{Name: "web"})
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Running: true})
	n.print(w, "second\n")
	text, _ := s.text(7)
	must.Eq(t, "second\n", text)
	n.tasks.set("a")
	s.ends()
}

// A caller that lost its stream goes on behind its last frame, also if files were removed meanwhile.
func TestLogs_resume(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.log("web", small())
	n.print(w, "%s\n%s\n", strings.Repeat("a", 59), strings.Repeat("b", 59))
	s := n.follow(followWeb)
	_, last := s.text(60)
	s.end()
	must.Eq(t, "alloc/logs/web.stdout.0", last.File)
	resume := fmt.Sprintf("%s&file=%s&offset=%d", followWeb, last.File, last.Offset)

	s = n.follow(resume)
	text, _ := s.text(60)
	must.Eq(t, strings.Repeat("b", 59)+"\n", text)
	s.end()

	for range 4 {
		n.print(w, "%s\n", strings.Repeat("c", 59))
	}
	s = n.follow(resume)
	must.Eq(t, api.StreamFrame{File: "alloc/logs/web.stdout.3", FileEvent: "files of this log were removed before they were read"}, s.next())
	text, _ = s.text(120)
	must.Eq(t, strings.Repeat(strings.Repeat("c", 59)+"\n", 2), text[:120])
	_, plain := n.get(strings.Replace(resume, "follow=true", "plain=true", 1))
	must.StrHasPrefix(t, "nodedrain: files of this log were removed before they were read\n", plain)
}

// A caller that follows a task that has not started waits for its first line. One that does not follow
// gets an error.
func TestLogs_pending(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.tasks.set("a", nodeapi.TaskState{Name: "web"})
	n.tasks.set("new", nodeapi.TaskState{Name: "web"})
	s := n.follow(followWeb + "&origin=end&offset=3")
	other := n.follow("/v1/client/fs/logs/new?task=web&type=stderr&follow=true")
	w := n.log("web", small())
	n.print(w, "hello\n")
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Running: true})
	must.Eq(t, "hello\n", string(s.next().Data)) // one read: a part of it fails here
	n.tasks.set("new", nodeapi.TaskState{Name: "web", Dead: true})
	other.ends()

	// The folders of an allocation are made one after the other.
	n.tasks.set("half", nodeapi.TaskState{Name: "web"})
	must.NoError(t, os.Mkdir(n.dirs.Alloc("half"), 0o700))
	status, body := n.get("/v1/client/fs/logs/half?task=web&type=stdout")
	must.Eq(t, http.StatusNotFound, status)
	must.StrContains(t, body, "has not started yet")
}

// A task prints more than its reader takes. The reader gets a part, and an event for the rest.
func TestLogs_slowReader(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := n.log("web", tasklog.Limits{MaxFiles: 2, MaxFileSize: 1 << 20})
	n.print(w, "first\n")
	s := n.follow(followWeb)
	must.Eq(t, "first\n", string(s.next().Data))
	line := strings.Repeat("x", 1023) + "\n"
	for range 64 << 10 { // 64 MiB: more than the connection takes
		n.print(w, "%s", line)
	}
	n.print(w, "last\n")
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Dead: true})
	events, tail, got := 0, "", 0
	for {
		var f api.StreamFrame
		err := s.decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		must.NoError(t, err)
		if f.FileEvent != "" {
			events++
		}
		if len(f.Data) > 0 {
			tail = string(f.Data)
		}
		got += len(f.Data)
	}
	must.StrHasSuffix(t, "last\n", tail)
	must.Positive(t, events)
	must.Less(t, 64<<20, got)
}

// A folder of logs in which others have put something is not trusted.
func TestLogs_strange(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/secrets/token", "secret")
	must.NoError(t, os.Symlink("../../web/secrets/token", filepath.Join(n.dirs.Logs("a"), "web.stdout.0")))
	status, _ := n.get("/v1/client/fs/logs/a?task=web&type=stdout")
	must.Eq(t, http.StatusNotFound, status)
	n.put("alloc/logs/web.stdout.1", "log")
	_, plain := n.get("/v1/client/fs/logs/a?task=web&type=stdout&plain=true")
	must.Eq(t, "log", plain)
	status, body := n.get("/v1/client/fs/logs/a?task=web&type=stdout&plain=true&file=web.stdout.0")
	must.Eq(t, http.StatusInternalServerError, status)
	must.StrContains(t, body, "is not a regular file")
	must.StrNotContains(t, body, "secret\n")
}

func TestStream(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.put("web/local/file", "0123456789")
	path := filepath.Join(n.dirs.Alloc("a"), "web/local/file")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must.NoError(t, err)
	defer file.Close()
	for query, expected := range map[string]string{"": "0123456789", "&offset=4": "456789", "&offset=3&origin=end": "789", "&offset=99&origin=end": "0123456789", "&offset=99": ""} {
		_, plain := n.get("/v1/client/fs/stream/a?path=web/local/file&plain=true&follow=false" + query)
		must.Eq(t, expected, plain, must.Sprint(query))
	}
	cancel := make(chan struct{})
	defer close(cancel)
	frames, _ := n.client().AllocFS().Stream(alloc("a"), "/web/local/file", "end", 3, cancel, nil)
	must.Eq(t, &api.StreamFrame{Offset: 10, Data: []byte("789"), File: "web/local/file"}, <-frames)
	_, err = file.WriteString("more")
	must.NoError(t, err)
	must.Eq(t, &api.StreamFrame{Offset: 14, Data: []byte("more"), File: "web/local/file"}, <-frames)
	must.NoError(t, file.Truncate(2))
	must.Eq(t, "file truncated", (<-frames).FileEvent)
	must.Eq(t, "01", string((<-frames).Data))

	s := n.follow("/v1/client/fs/stream/a?path=web/local/file")
	s.text(2)
	must.NoError(t, os.Remove(path))
	must.Eq(t, "file deleted", s.next().FileEvent)
	s.ends()
	must.Eq(t, "file deleted", (<-frames).FileEvent)
}
