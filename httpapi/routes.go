package httpapi

import (
	"math"
	"net/http"
	"slices"
	"strings"
)

// route is one way to ask.
type route struct {
	// method is GET, PUT, POST or DELETE; a route of PUT is one of POST too.
	method string
	// path is a pattern of [http.ServeMux] without its method.
	path string
	// needs is what the request's identity must be allowed to do.
	needs right
	// reads says that the request changes nothing, and takes the parameters of reads.
	reads bool
	// body bounds the request's body, in bytes, below [Options.MaxBody]. Of zero it is
	// not looked at.
	body int64
	// local says that whichever server is asked answers, from what it knows.
	local bool
	// own says that the secret of the node that the path names will do as the token.
	own bool
	// answer answers, or says why not.
	answer func(*request) error
}

// routes are all the routes there are. Those of the compatible API come first, then
// ours; docs/api.md lists the same.
func routes() []route {
	return []route{
		get("/v1/nodes", (*request).listNodes),
		get("/v1/node/{id}", (*request).readNode).byOwner(),
		get("/v1/node/{id}/allocations", (*request).listNodeAllocs).byOwner(),
		put("/v1/node/{id}/drain", (*request).updateDrain).byOwner().within(maxDrainBody),
		put("/v1/node/{id}/eligibility", (*request).updateEligibility),
		put("/v1/node/{id}/evaluate", (*request).evaluateNode).within(0),
		put("/v1/node/{id}/purge", (*request).purgeNode).within(0),

		get("/v1/jobs", (*request).listJobs),
		put("/v1/jobs", (*request).registerJob),
		get("/v1/job/{id}", (*request).readJob),
		put("/v1/job/{id}", (*request).registerJob),
		remove("/v1/job/{id}", (*request).stopJob),
		put("/v1/job/{id}/evaluate", (*request).evaluateJob).within(0),
		get("/v1/job/{id}/allocations", (*request).listJobAllocs),
		get("/v1/job/{id}/evaluations", (*request).listJobEvals),
		get("/v1/job/{id}/summary", (*request).readJobSummary),

		get("/v1/allocations", (*request).listAllocs),
		get("/v1/allocation/{id}", (*request).readAlloc),
		get("/v1/evaluations", (*request).listEvals),
		get("/v1/evaluation/{id}", (*request).readEval),
		get("/v1/evaluation/{id}/allocations", (*request).listEvalAllocs),
		get("/v1/namespaces", (*request).listNamespaces),
		put("/v1/search", (*request).search).reading(),

		get("/v1/agent/self", (*request).readAgent).here(needsRead),
		get("/v1/agent/members", (*request).listMembers).here(needsRead),
		get("/v1/metrics", (*request).readMetrics).here(needsRead),
		get("/v1/status/leader", (*request).readLeader).here(needsNothing),
		get("/v1/status/peers", (*request).listPeers).here(needsNothing),
		get("/v1/regions", (*request).listRegions).here(needsNothing),
		get("/v1/operator/raft/configuration", (*request).readRaftConfiguration),
		remove("/v1/operator/raft/peer", (*request).removePeer),

		get("/v1/node/{id}/drain", (*request).readDrain).byOwner(),
		get("/v1/drains", (*request).listDrains),
		put("/v1/client/{id}/register", (*request).registerNode).byOwner().within(maxRegistration),
		put("/v1/client/{id}/heartbeat", (*request).heartbeat).byOwner().within(0),
		put("/v1/client/{id}/allocations", (*request).reportAllocs).byOwner().within(maxReport),
		put("/v1/operator/raft/join", (*request).joinPeer),
	}
}

func get(path string, answer func(*request) error) route {
	return route{method: http.MethodGet, path: path, needs: needsRead, reads: true, answer: answer}
}

func put(path string, answer func(*request) error) route {
	return route{method: http.MethodPut, path: path, needs: needsWrite, body: math.MaxInt64, answer: answer}
}

func remove(path string, answer func(*request) error) route {
	return route{method: http.MethodDelete, path: path, needs: needsWrite, answer: answer}
}

// within bounds the body of the route.
func (r route) within(bytes int64) route {
	r.body = bytes
	return r
}

// byOwner lets the node that the path names ask with its secret.
func (r route) byOwner() route {
	r.own = true
	return r
}

// reading makes a PUT a read: its body says what to look for.
func (r route) reading() route {
	r.reads, r.needs = true, needsRead
	return r
}

// here has the server that is asked answer, and says what that needs.
func (r route) here(needs right) route {
	r.local, r.needs = true, needs
	return r
}

// methods are the methods of the route.
func (r route) methods() []string {
	if r.method == http.MethodPut {
		return []string{http.MethodPut, http.MethodPost}
	}
	return []string{r.method}
}

// otherRoute is what a request is observed as that no route answers.
const otherRoute = "other"

// route has the mux know the routes. A path that is known answers other methods 405, one
// that is not 404 without a word, as the reference does.
func (h *Handler) route(all []route) {
	allowed := map[string][]string{}
	for _, one := range all {
		for _, method := range one.methods() {
			pattern := method + " " + one.path
			h.mux.HandleFunc(pattern, h.observed(pattern, h.serve(one)))
		}
		allowed[one.path] = append(allowed[one.path], one.methods()...)
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		h.mux.HandleFunc(path, h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", allow)
			WriteError(w, http.StatusMethodNotAllowed, "Invalid method")
		}))
	}
	h.mux.HandleFunc("/", h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
}
