package alloc

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The checks are in the order of their services and names. A check without a result has no time.
func TestPrintChecks(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	show := func(all wire.AllocCheckStatuses) string {
		var out bytes.Buffer
		printChecks(&cli.Call{Base: cli.Base{Stdio: cli.Stdio{Out: &out}}}, all)
		return out.String()
	}
	must.EqOp(t, "No checks found\n", show(nil))
	must.EqOp(t, `Status of 2 Nomad Service Checks

ID      = 2
Name    = ready
Group   = shop.web[0]
Task    = nginx
Service = api
Status  = pending
Mode    = readiness

ID         = 1
Name       = alive
Group      = shop.web[0]
Task       = (group)
Service    = web
Status     = failure
StatusCode = 503
Mode       = healthiness
Timestamp  = `+at.Format(time.RFC3339)+`
Output     = HTTP 503 Service Unavailable no database
`, show(wire.AllocCheckStatuses{
		"1": {ID: "1", Check: "alive", Group: "shop.web[0]", Service: "web", Status: "failure", StatusCode: 503, Mode: "healthiness", Timestamp: at.Unix(), Output: "HTTP 503 Service Unavailable\nno database\n"},
		"2": {ID: "2", Check: "ready", Group: "shop.web[0]", Task: "nginx", Service: "api", Status: "pending", Mode: "readiness"},
	}))
}

// The status of an allocation shows which check does not pass, and a short part of its output.
func TestCheckTable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	out := checkTable(wire.AllocCheckStatuses{
		"1": {ID: "1", Check: "alive", Service: "web", Status: "failure", Mode: "healthiness", Timestamp: at.Unix(), Output: "HTTP 503\n\x1b[2Jno\tdatabase"},
		"2": {ID: "2", Check: "ready", Task: "nginx", Service: "api", Status: "pending", Mode: "readiness"},
		"3": {ID: "3", Check: "open", Service: "web", Status: "success", Mode: "healthiness", Timestamp: at.Unix(), Output: "the port accepts connections"},
		"4": {ID: "4", Check: "long", Service: "web", Status: "failure", Mode: "healthiness", Timestamp: at.Unix(), Output: strings.Repeat("ü", 200)},
	}).String()
	for _, line := range []string{
		`(?m)^api +ready +nginx +pending +no +- +-$`,
		`(?m)^web +alive +- +failure +yes +2026-11-20T12:00:00\S* +HTTP 503 \x{FFFD}\[2Jno database$`,
		`(?m)^web +long +- +failure +yes +\S+ +ü{120}…$`,
		`(?m)^web +open +- +success +yes +\S+ +-$`,
	} {
		must.RegexMatch(t, regexp.MustCompile(line), out)
	}
}
