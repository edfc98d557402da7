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
	must.Eq(t, "2 allocations leave in 32s; nothing falls below its limit", one.Sentence)
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

// passing is a leader and a follower. Each has its own state, with the same node.
type passing struct {
	leader, follower *fixture
	send             func(ctx context.Context, body string) *httptest.ResponseRecorder
	// made counts the plans that the leader makes.
	made int
}

func newPassing(t *testing.T, ofFollower func(httpapi.Planner) httpapi.Planner) *passing {
	p := &passing{leader: newFixture(t).nodes(1), follower: newFixture(t).nodes(1)}
	p.follower.follows = true
	b := p.follower.backend()
	b.Planner = ofFollower(b.Planner)
	p.leader.follower = p.follower.handler(b, httpapi.Options{}).Forwarded()
	own := p.leader.backend()
	own.Planner = countedPlanner{own.Planner, &p.made}
	h := p.leader.handler(own, httpapi.Options{})
	p.send = func(ctx context.Context, body string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "POST", planPath, strings.NewReader(body)))
		return answer
	}
	return p
}

// countedPlanner counts plans.
type countedPlanner struct {
	httpapi.Planner
	made *int
}

func (p countedPlanner) PlanDrains(ctx context.Context, q httpapi.DrainQuestion, more func(int) bool) (*drainplan.Answer, error) {
	*p.made++
	return p.Planner.PlanDrains(ctx, q, more)
}

func samePlanner(p httpapi.Planner) httpapi.Planner { return p }

// onePlan is the body of a request for the first node.
func onePlan() string { return fmt.Sprintf(`{"Nodes":[%q],"DrainSpec":{}}`, nodeID(1)) }

// A leader passes a plan to a follower. The answer has the age of the follower's state. The follower passes
// nothing on, and a server that does not lead passes nothing.
func TestDrainPlan_passed(t *testing.T) {
	t.Parallel()
	p := newPassing(t, samePlanner)
	a := p.send(t.Context(), onePlan())
	must.Eq(t, http.StatusOK, a.Code, must.Sprint(a.Body))
	must.Eq(t, "42", a.Header().Get("X-Nomad-LastContact"))
	must.Eq(t, fmt.Sprint(p.follower.Index), a.Header().Get("X-Nomad-Index"))
	must.StrContains(t, a.Body.String(), `"Sentence":`)
	must.Eq(t, []int{0, 1, 0}, []int{p.made, p.leader.passed, p.follower.passed})

	must.Eq(t, http.StatusBadRequest, p.send(t.Context(), `{"DrainSpec":{}}`).Code)
	must.Eq(t, 1, p.leader.passed) // not with a mistake
	p.leader.follows = true
	must.Eq(t, http.StatusOK, p.send(t.Context(), onePlan()).Code)
	must.Eq(t, []int{1, 1}, []int{p.made, p.leader.passed})
}

// A header of a client does not make a server wait, or answer itself.
func TestDrainPlan_headersOfClients(t *testing.T) {
	t.Parallel()
	p := newPassing(t, samePlanner)
	h := p.leader.handler(p.leader.backend(), httpapi.Options{})
	r := httptest.NewRequest("POST", planPath, strings.NewReader(onePlan()))
	r.Header.Set("X-Nodedrain-Forwarded", "s2 00")
	r.Header.Set("X-Nodedrain-Applied", "999999")
	a := httptest.NewRecorder()
	h.ServeHTTP(a, r)
	must.Eq(t, http.StatusOK, a.Code)
	must.Eq(t, "42", a.Header().Get("X-Nomad-LastContact"))
}

// If the follower does not answer 200, such as one that is older or does not plan, the leader answers.
func TestDrainPlan_notPassed(t *testing.T) {
	t.Parallel()
	p := newPassing(t, func(httpapi.Planner) httpapi.Planner { return nil })
	a := p.send(t.Context(), onePlan())
	must.Eq(t, http.StatusOK, a.Code)
	must.Eq(t, "0", a.Header().Get("X-Nomad-LastContact"))
	must.Eq(t, []int{1, 1}, []int{p.made, p.leader.passed})
}

// A follower waits for the entries that the leader has applied, a second at most. Then the leader answers.
func TestDrainPlan_followerLags(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPassing(t, samePlanner)
		p.leader.job("web", cluster.JobService, 1)
		p.leader.mu.Lock()
		want := p.leader.Index
		p.leader.mu.Unlock()
		begin := func() chan *httptest.ResponseRecorder {
			answered := make(chan *httptest.ResponseRecorder, 1)
			go func() { answered <- p.send(t.Context(), onePlan()) }()
			synctest.Wait()
			return answered
		}
		began := time.Now()
		a := <-begin()
		must.Eq(t, "0", a.Header().Get("X-Nomad-LastContact"))
		must.Eq(t, time.Second, time.Since(began))
		must.Eq(t, 1, p.made)

		later := begin()
		p.follower.job("web", cluster.JobService, 1)
		a = <-later
		must.Eq(t, "42", a.Header().Get("X-Nomad-LastContact"))
		must.Eq(t, fmt.Sprint(want), a.Header().Get("X-Nomad-Index"))
		must.Eq(t, time.Second, time.Since(began))
		must.Eq(t, 1, p.made)
	})
}

// The plan of the follower ends when the caller goes, and after two minutes. The leader makes none after it.
func TestDrainPlan_passedEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := 0
		p := newPassing(t, func(q httpapi.Planner) httpapi.Planner { return heldPlanner{q, &held} })
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			p.send(ctx, onePlan())
			close(left)
		}()
		synctest.Wait()
		must.Eq(t, 1, held)
		leave()
		<-left

		began := time.Now()
		a := p.send(t.Context(), onePlan())
		must.Eq(t, http.StatusServiceUnavailable, a.Code)
		must.StrContains(t, a.Body.String(), "not ready after 2m0s")
		must.Eq(t, 2*time.Minute, time.Since(began))
		must.Eq(t, []int{2, 0}, []int{held, p.made})
	})
}
