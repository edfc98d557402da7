package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/posener/complete"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// A drain is completed if there is something to confirm.
func TestPredictor_drains(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Active":[{"Drain":{"ID":"ab1"}}],"Recent":[{"ID":"ab2","Unconfirmed":1},{"ID":"ab3"},{"ID":"b4","Unconfirmed":1}]}`))
	}))
	t.Cleanup(server.Close)
	b := Base{Ctx: context.Background(), Stdio: Stdio{Getenv: func(name string) string { return map[string]string{client.EnvAddress: server.URL}[name] }}}
	must.Eq(t, []string{"ab2"}, b.predictor("DRAIN").Predict(complete.Args{Last: "ab"}))
	must.SliceEmpty(t, b.predictor("DRAIN").Predict(complete.Args{Last: "ac"}))
}
