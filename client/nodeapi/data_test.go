package nodeapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// keeper keeps the data of allocation "p" in a folder. It counts the copies.
type keeper struct {
	dir    string
	opened chan []string
	ended  chan struct{}
}

func (k *keeper) Open(alloc string, folders []string) ([]datacopy.Source, func(), error) {
	switch alloc {
	case "p":
	case "live":
		return nil, nil, fmt.Errorf("%w: it has not ended", nodeapi.ErrState)
	case "broken":
		return nil, nil, errors.New("input/output error")
	default:
		return nil, nil, fmt.Errorf("%w: no data", nodeapi.ErrUnknown)
	}
	root, err := os.OpenRoot(k.dir)
	if err != nil {
		return nil, nil, err
	}
	k.opened <- folders
	return []datacopy.Source{{Name: "alloc/data", Root: root}}, func() {
		_ = root.Close()
		k.ended <- struct{}{}
	}, nil
}

func newKeeper(t *testing.T) (*keeper, string) {
	k := &keeper{dir: t.TempDir(), opened: make(chan []string, 100), ended: make(chan struct{}, 100)}
	server := httptest.NewServer(nodeapi.New(nodeapi.Options{Data: k}))
	t.Cleanup(server.Close)
	return k, server.URL + "/v1/client/allocation/"
}

// fetch sends a request, and returns the status, the header and the text of its answer.
func fetch(t *testing.T, url string) (int, http.Header, string, error) {
	t.Helper()
	answer, err := http.Get(url)
	must.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, string(text), err
}

// The data of an ended allocation is sent from the position that the caller names.
func TestData_answers(t *testing.T) {
	t.Parallel()
	k, at := newKeeper(t)
	must.NoError(t, os.WriteFile(filepath.Join(k.dir, "one"), []byte("first"), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(k.dir, "two"), []byte("second"), 0o600))
	status, header, text, err := fetch(t, at+"p/data?folder=alloc/data&folder=t/local&after=alloc/data/one&offset=5")
	must.NoError(t, err)
	must.Eq(t, http.StatusOK, status)
	must.Eq(t, "p", header.Get(wire.DataSource))
	must.Eq(t, []string{"alloc/data", "t/local"}, <-k.opened)
	<-k.ended
	must.StrContains(t, text, "second")
	must.StrNotContains(t, text, "first")
	for path, want := range map[string]int{
		"unknown/data": http.StatusGone, "live/data": http.StatusServiceUnavailable, "broken/data": http.StatusInternalServerError,
		"p/data?offset=-1": http.StatusBadRequest, "p/data?offset=9223372036854775808": http.StatusBadRequest,
		"p/data?" + strings.Repeat("folder=x&", 10_001): http.StatusBadRequest,
	} {
		status, header, _, err := fetch(t, at+path)
		must.NoError(t, err)
		must.Eq(t, want, status, must.Sprint(path))
		must.Eq(t, want == http.StatusServiceUnavailable, header.Get("Retry-After") != "")
	}
	answer, err := http.Head(at + "p/data")
	must.NoError(t, err)
	must.NoError(t, answer.Body.Close())
	must.Eq(t, http.StatusMethodNotAllowed, answer.StatusCode)
	must.SliceEmpty(t, k.left())
}

func (k *keeper) left() (opened []string) {
	for len(k.opened) > 0 {
		opened = append(opened, <-k.opened...)
	}
	return opened
}

// One copy is sent at a time. A second one waits. When the caller is gone, the next one is sent.
func TestData_oneAtATime(t *testing.T) {
	t.Parallel()
	k, at := newKeeper(t)
	file, err := os.Create(filepath.Join(k.dir, "large"))
	must.NoError(t, err)
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i)
	}
	for range 32 { // more than the sockets hold
		_, err := file.Write(block)
		must.NoError(t, err)
	}
	must.NoError(t, file.Close())
	first, err := http.Get(at + "p/data")
	must.NoError(t, err)
	<-k.opened
	status, header, text, err := fetch(t, at+"p/data")
	must.NoError(t, err)
	must.Eq(t, http.StatusServiceUnavailable, status)
	must.NotEq(t, "", header.Get("Retry-After"))
	must.StrContains(t, text, "another allocation first")
	must.NoError(t, first.Body.Close())
	<-k.ended
	for status = http.StatusServiceUnavailable; status == http.StatusServiceUnavailable; {
		status, _, text, err = fetch(t, at+"p/data")
	}
	must.NoError(t, err)
	must.Greater(t, 32<<20, len(text))
}

// A copy whose folder cannot be read to the end is cut.
func TestData_cut(t *testing.T) {
	t.Parallel()
	k, at := newKeeper(t)
	must.NoError(t, os.RemoveAll(k.dir))
	must.NoError(t, os.MkdirAll(filepath.Join(k.dir, "d"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(k.dir, "d", "x"), []byte("x"), 0o600))
	for range 300 { // deeper than a sender goes
		must.NoError(t, os.Rename(filepath.Join(k.dir, "d"), filepath.Join(k.dir, "e")))
		must.NoError(t, os.Mkdir(filepath.Join(k.dir, "d"), 0o700))
		must.NoError(t, os.Rename(filepath.Join(k.dir, "e"), filepath.Join(k.dir, "d", "d")))
	}
	status, _, _, err := fetch(t, at+"p/data")
	must.Eq(t, http.StatusOK, status)
	must.Error(t, err)
}
