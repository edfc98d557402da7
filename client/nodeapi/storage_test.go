package nodeapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// controllers is a node's storage plugins: it returns what was requested.
type controllers struct {
	requested string
	err       error
}

func (c *controllers) Attach(_ context.Context, p cluster.PluginID, a nodeapi.Attachment) (map[string]string, error) {
	c.requested = fmt.Sprint("attach ", p, " ", a.ExternalID, " ", a.NodeID, " ", a.Secrets["key"])
	return map[string]string{"device": "sdb"}, c.err
}

func (c *controllers) Detach(_ context.Context, p cluster.PluginID, a nodeapi.Attachment) error {
	c.requested = fmt.Sprint("detach ", p, " ", a.ExternalID, " ", a.NodeID)
	return c.err
}

func post(c nodeapi.Storage, verb, body string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	nodeapi.New(nodeapi.Options{Storage: c}).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/internal/storage/team%2Fdisks/"+verb, strings.NewReader(body)))
	return answer
}

func TestStorage(t *testing.T) {
	t.Parallel()
	c := new(controllers)
	body, err := json.Marshal(nodeapi.Attachment{
		ExternalID: "ext", NodeID: "n", Secrets: map[string]string{"key": "secret"}, Capability: cluster.VolumeCapability{Access: cluster.MultiNodeReader},
	})
	must.NoError(t, err)
	for _, one := range []struct{ verb, requested, answer string }{
		{"attach", "attach team/disks ext n secret", `{"PublishContext":{"device":"sdb"}}`},
		{"detach", "detach team/disks ext n", `{}`},
	} {
		answer := post(c, one.verb, string(body))
		must.EqOp(t, http.StatusOK, answer.Code)
		must.EqOp(t, one.answer, answer.Body.String())
		must.EqOp(t, one.requested, c.requested)
	}
}

func TestStorage_errors(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("%w: no such volume", nodeapi.ErrRefused), http.StatusUnprocessableEntity},
		{fmt.Errorf("%w: no controller runs", nodeapi.ErrState), http.StatusConflict},
		{errors.New("the pool is busy"), http.StatusInternalServerError},
	} {
		answer := post(&controllers{err: one.err}, "detach", "{}")
		must.EqOp(t, one.status, answer.Code)
		must.EqOp(t, one.err.Error(), answer.Body.String())
	}
	must.EqOp(t, http.StatusBadRequest, post(new(controllers), "attach", "[").Code)
	must.EqOp(t, http.StatusNotImplemented, post(nil, "attach", "{}").Code)
	must.EqOp(t, http.StatusNotFound, post(new(controllers), "format", "{}").Code)
}
