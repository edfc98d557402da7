package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

const planPath = "/v1/drains/plan"

// A plan answers for named nodes and for those of a filter, and writes nothing.
func TestDrainPlan(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	web := w.job("web", cluster.JobService, 3)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(1))
	w.place(3, web, nodeID(2))
	base := w.serve(httpapi.Options{}).URL
	before := w.Index
	planned := func(body string) (plan drainplan.Answer) {
		a := request(t, "POST", base+planPath, body)
		must.Eq(t, 200, a.code, must.Sprint(a.body))
		must.Eq(t, fmt.Sprint(before), a.header.Get("X-Nomad-Index"))
		must.NotEq(t, "", a.header.Get("X-Nomad-LastContact"))
		must.NoError(t, json.Unmarshal([]byte(a.body), &plan))
		return plan
	}
	one := planned(fmt.Sprintf(`{"Nodes":[%q],"DrainSpec":{"Deadline":0}}`, nodeID(1)))
	must.Eq(t, "2 allocations leave in 52s; nothing falls below its limit", one.Sentence)
	must.Eq(t, before, one.Index)
	must.Eq(t, before, w.Index)

	filtered := planned(`{"Filter":"Name == n1 or Name == n2","DrainSpec":{}}`)
	must.SliceLen(t, 2, filtered.Nodes)
	must.Eq(t, 3, filtered.Allocs)
	both := planned(fmt.Sprintf(`{"Nodes":[%q,%q],"Filter":"Name == n1","DrainSpec":{}}`, nodeID(2), nodeID(2)))
	must.Eq(t, []string{string(nodeID(2)), string(nodeID(1))}, []string{both.Nodes[0].ID, both.Nodes[1].ID})
}

// A drain keeps what a plan foretold, and its story has it. A long sentence is cut.
func TestDrainPlan_isKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	base := w.serve(httpapi.Options{}).URL
	for sentence, want := range map[string]string{
		"3 allocations leave in 1m": "3 allocations leave in 1m",
		strings.Repeat("é", 100):    strings.Repeat("é", 78) + "...",
	} {
		body := fmt.Sprintf(`{"DrainSpec":{},"Plan":{"Sentence":%q,"Index":7,"Took":60,"Least":50,"Most":70}}`, sentence)
		a := request(t, "PUT", base+"/v1/node/"+string(nodeID(1))+"/drain", body)
		must.Eq(t, 200, a.code, must.Sprint(a.body))
		id := w.State().Node(nodeID(1)).Drain.ID
		story := request(t, "GET", base+"/v1/drain/"+string(id), "")
		must.StrContains(t, story.body, fmt.Sprintf(`"Plan":{"Sentence":%q,"Index":7,"Took":60,"Least":50,"Most":70}`, want))
	}
}

func TestDrainPlan_mistakes(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	base := w.serve(httpapi.Options{}).URL
	for body, want := range map[string]string{
		`{"Nodes":["x"]}`:                                              "400 DrainSpec is missing",
		`{"DrainSpec":{}}`:                                             "400 Nodes or Filter is required",
		`{"Nodes":["gone"],"DrainSpec":{}}`:                            `404 node not found: "gone"`,
		`{"Filter":"Name == other","DrainSpec":{}}`:                    "404 the filter selects no node",
		`{"Filter":"Name ==","DrainSpec":{}}`:                          "400 ",
		`{"Filter":"Nam == other","DrainSpec":{}}`:                     "400 ",
		`{"Nodes":["x"],"DrainSpec":{},"Plays":-1}`:                    "400 Plays is -1 and must be at most 199; 0 lets the server choose",
		`{"Nodes":["x"],"DrainSpec":{"Deadline":9223372036854775807}}`: "400 Deadline is",
		`{`: "400 ",
	} {
		a := request(t, "POST", base+planPath, body)
		must.StrHasPrefix(t, want, fmt.Sprint(a.code, " ", a.body))
	}
	b := w.backend()
	b.Planner = nil
	a := request(t, "POST", w.serveAs(b, httpapi.Options{}).URL+planPath, `{"Nodes":["x"],"DrainSpec":{}}`)
	must.Eq(t, http.StatusNotImplemented, a.code)
}

// heldPlanner ends a plan with its context.
type heldPlanner struct {
	httpapi.Planner
	made *int
}

func (p heldPlanner) PlanDrains(ctx context.Context, _ httpapi.DrainQuestion, _ func(int) bool) (*drainplan.Answer, error) {
	*p.made++
	<-ctx.Done()
	return nil, ctx.Err()
}

// A server makes one plan at a time. One caller may have a few that wait, and one more is refused. A plan ends
// when its caller goes, and then the next one begins. None takes longer than two minutes.
func TestDrainPlan_many(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t).nodes(1)
		b := w.backend()
		made := 0
		b.Planner = heldPlanner{b.Planner, &made}
		h := w.handler(b, httpapi.Options{})
		body := fmt.Sprintf(`{"Nodes":[%q],"DrainSpec":{}}`, nodeID(1))
		call := func() (*httptest.ResponseRecorder, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", planPath, strings.NewReader(body))
			answer := httptest.NewRecorder()
			go h.ServeHTTP(answer, r)
			synctest.Wait()
			return answer, cancel
		}
		_, endFirst := call()
		second, _ := call()
		third, _ := call()
		_, endFourth := call()
		must.Eq(t, 1, made)
		refused, _ := call()
		must.Eq(t, http.StatusTooManyRequests, refused.Code)
		must.StrContains(t, refused.Body.String(), "4 of one caller; retry later")

		endFirst()
		synctest.Wait()
		must.Eq(t, 2, made)
		endFourth() // it has waited
		synctest.Wait()
		must.Eq(t, 2, made)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		must.Eq(t, http.StatusServiceUnavailable, second.Code)
		must.StrContains(t, second.Body.String(), "not ready after 2m0s")
		must.Eq(t, http.StatusServiceUnavailable, third.Code)
	})
}
