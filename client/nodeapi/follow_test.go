package nodeapi

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
)

// scriptedSource answers reads in turn. After the last one it has nothing.
type scriptedSource struct {
	answers []string // "EOF", "broken", or data
	offset  int64
}

func (s *scriptedSource) at() (string, int64) { return "f", s.offset }

func (s *scriptedSource) Next(p []byte) (int, error) {
	if len(s.answers) == 0 {
		return 0, io.EOF
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	switch next {
	case "EOF":
		return 0, io.EOF
	case "broken":
		return 0, errors.New("the disk is gone")
	}
	s.offset += int64(len(next))
	return copy(p, next), nil
}

// Without a watch of the kernel, a reader reads its file every few seconds. A quiet stream has empty
// frames.
func TestFollow_withoutWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newReader(Options{})
		answer := httptest.NewRecorder()
		begun := time.Now()
		over := func() (bool, <-chan struct{}) { return time.Since(begun) >= 2*beatInterval, nil }
		s := &scriptedSource{answers: []string{"a", "EOF", "bc"}}
		must.NoError(t, h.follow(t.Context(), newSender(answer, false), s, nil, over))
		must.Eq(t, 2*beatInterval, time.Since(begun))
		must.Eq(t, `{"Offset":1,"Data":"YQ==","File":"f"}{}{"Offset":3,"Data":"YmM=","File":"f"}{}`, answer.Body.String())
	})
}

func TestReader_watchFails(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := newReader(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	dir, err := os.OpenRoot(t.TempDir())
	must.NoError(t, err)
	must.NoError(t, dir.Close())
	changed, stop := h.watch(dir, func(string) bool { return true })
	must.Nil(t, changed)
	stop()
	must.StrContains(t, log.String(), "the kernel does not watch it")
}

// If the source of an answer fails on the way, the caller can see that the answer is not complete. A caller
// that leaves is no failure.
func TestFollow_broken(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	files := newReader(h.options)
	h.handle("GET /broken", func(w http.ResponseWriter, r *http.Request) error {
		return files.drain(r.Context(), newSender(w, true), &scriptedSource{answers: []string{"a", "broken"}}, never)
	})
	h.handle("GET /at-once", func(w http.ResponseWriter, r *http.Request) error {
		return files.drain(r.Context(), newSender(w, true), &scriptedSource{answers: []string{"broken"}}, never)
	})
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/broken")
	must.NoError(t, err)
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	must.ErrorIs(t, err, io.ErrUnexpectedEOF)
	answer, err = server.Client().Get(server.URL + "/at-once")
	must.NoError(t, err)
	defer answer.Body.Close()
	must.Eq(t, http.StatusInternalServerError, answer.StatusCode)
	must.ErrorIs(t, files.drain(t.Context(), newSender(gone{httptest.NewRecorder()}, true), &scriptedSource{answers: []string{"a"}}, never), errGone)
}

// gone is a connection that the caller has left.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, os.ErrClosed }
