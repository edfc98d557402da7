package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// route is a method and a path with its handler.
type route struct {
	// method is GET, PUT, POST or DELETE. A route of PUT answers POST too.
	method string
	// path is a pattern of [http.ServeMux] without its method.
	path string
	// needs is the right that the request's identity must have.
	needs right
	// reads marks a request that changes nothing and takes the parameters of reads.
	reads bool
	// body bounds the request's body, in bytes, below [Options.MaxBody]. Zero: the body is ignored.
	body int64
	// local: the receiving server answers from its own knowledge.
	local bool
	// own: the secret of the node in the path is a valid token.
	own bool
	// ofAlloc: the path names an allocation, and its node is the one whose secret is a valid token.
	ofAlloc bool
	// bulk: the request or its answer is a file. It has more time, and its body is not read in
	// advance.
	bulk bool
	// live: the answer is a stream. Pages of other servers do not get it.
	live bool
	// greets: with ws_handshake=true the token is in the first message of the stream, and answer checks the
	// right.
	greets bool
	// answer answers the request, or returns why not.
	answer func(*request) error
}

// routes are all routes: first those of the compatible API, then ours. docs/api.md lists the same.
func routes() []route { return slices.Concat(compatibleRoutes(), ownRoutes()) }

func compatibleRoutes() []route {
	return []route{
		get("/v1/nodes", listNodes),
		get("/v1/node/{id}", readNode),
		get("/v1/node/{id}/allocations", listNodeAllocs).byOwner(),
		put("/v1/node/{id}/drain", updateDrain).within(maxDrainBody),
		put("/v1/node/{id}/eligibility", updateEligibility),
		put("/v1/node/{id}/evaluate", evaluateNode).within(0),
		put("/v1/node/{id}/purge", purgeNode).within(0),

		get("/v1/jobs", listJobs),
		put("/v1/jobs", registerJob),
		put("/v1/validate/job", validateJob).reading(),
		get("/v1/job/{id}", readJob),
		put("/v1/job/{id}", registerJob),
		remove("/v1/job/{id}", stopJob),
		put("/v1/job/{id}/evaluate", evaluateJob).within(0),
		put("/v1/job/{id}/plan", planJob),
		put("/v1/job/{id}/revert", revertJob).within(maxJobChange),
		get("/v1/job/{id}/scale", readJobScale),
		put("/v1/job/{id}/scale", scaleJob).within(maxJobChange),
		get("/v1/job/{id}/allocations", listJobAllocs),
		get("/v1/job/{id}/evaluations", listJobEvals),
		get("/v1/job/{id}/summary", readJobSummary),
		get("/v1/job/{id}/versions", listJobVersions),
		get("/v1/job/{id}/submission", noSubmission),
		get("/v1/job/{id}/deployment", noDeployment),
		get("/v1/job/{id}/deployments", listNothing),
		get("/v1/job/{id}/services", listJobServices),

		get("/v1/allocations", listAllocs),
		get("/v1/allocation/{id}", readAlloc),
		put("/v1/allocation/{id}/stop", stopAlloc).within(0),
		get("/v1/evaluations", listEvals),
		get("/v1/evaluation/{id}", readEval),
		get("/v1/evaluation/{id}/allocations", listEvalAllocs),
		get("/v1/allocation/{id}/services", listAllocServices),
		get("/v1/client/allocation/{id}/checks", listChecks).here(needsRead),
		get("/v1/client/allocation/{id}/stats", reachAlloc).here(needsRead),
		get("/v1/client/allocation/{id}/exec", execAlloc).here(needsWrite).asStream().afterGreeting(),
		put("/v1/client/allocation/{id}/signal", reachAlloc).here(needsWrite).within(maxReachBody),
		put("/v1/client/allocation/{id}/restart", reachAlloc).here(needsWrite).within(maxReachBody),
		get("/v1/client/stats", reachNode).here(needsRead),
		get("/v1/client/fs/ls/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/client/fs/stat/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/client/fs/cat/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/client/fs/readat/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/client/fs/stream/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/client/fs/logs/{id}", reachAlloc).here(needsWrite).asStream(),
		get("/v1/deployments", listNothing),
		get("/v1/namespaces", listNamespaces),
		get(nodePoolsPath, listNodePools),
		put("/v1/search", search).reading(),

		get("/v1/services", listServices),
		get("/v1/service/{name}", readService),

		get("/v1/volumes", listVolumes),
		get("/v1/volume/csi/{id}", readVolume),
		put("/v1/volume/csi/{id}", registerVolume).within(maxVolume),
		remove("/v1/volume/csi/{id}", deregisterVolume),
		remove("/v1/volume/csi/{id}/detach", detachVolume),
		get("/v1/plugins", listPlugins),
		get("/v1/plugin/csi/{id}", readPlugin),

		get("/v1/agent/self", readAgent).here(needsRead),
		get("/v1/agent/members", listMembers).here(needsRead),
		get("/v1/agent/pprof/{profile}", readProfile).here(needsWrite),
		get("/v1/agent/health", readHealth).here(needsNothing),
		get(EventStreamPath, streamEvents).here(needsRead).asStream(),
		get("/v1/metrics", readMetrics).here(needsRead),
		get("/metrics", readMetrics).here(needsRead),
		get("/v1/status/leader", readLeader).here(needsNothing),
		get("/v1/status/peers", listPeers).here(needsNothing),
		get("/v1/regions", listRegions).here(needsNothing),
		get("/v1/operator/raft/configuration", readRaftConfiguration),
		remove("/v1/operator/raft/peer", removePeer),
		get(SnapshotPath, saveSnapshot).asFile(),
		put(SnapshotPath, restoreSnapshot).asFile(),
		put("/v1/system/gc", collectEnded).within(0),
	}
}

func ownRoutes() []route {
	return []route{
		get("/v1/node/{id}/drain", readDrain),
		get("/v1/drains", listDrains),
		put(DrainPlanPath, planDrains).here(needsRead).within(maxDrainPlanBody),
		get("/v1/drain/{id}", readStory),
		put("/v1/drain/{id}/confirm", confirmDrain).within(0),
		put("/v1/node/{id}/drain/pause", pauseDrain).within(0),
		put("/v1/node/{id}/drain/resume", resumeDrain).within(0),
		get("/v1/drains/pause", readPause),
		put("/v1/drains/pause", pauseAllDrains).within(0),
		put("/v1/drains/resume", resumeAllDrains).within(0),
		put("/v1/client/{id}/register", registerNode).byRegistrar().byOwner().within(maxRegistration),
		put("/v1/client/{id}/heartbeat", heartbeat).byOwner().within(0),
		get("/v1/client/{id}/session", holdSession).here(needsNode).byOwner(),
		get("/v1/client/allocation/{id}/data", copyData).here(needsNode).byAllocOwner().asStream(),
		put("/v1/client/{id}/allocations", reportAllocs).byOwner().within(maxReport),
		get("/v1/node/{id}/volumes", listNodeVolumes).forWriters().byOwner(),
		put("/v1/client/{id}/claims", releaseClaims).byOwner().within(maxClaims),
		put("/v1/operator/raft/join", joinPeer),
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

// byOwner lets the node that the path names send the request with its secret. Only what a node's client needs is
// such a route: it registers, sends heartbeats, reads its allocations and volumes and reports them.
func (r route) byOwner() route {
	r.own = true
	return r
}

// byAllocOwner is byOwner for a path that names an allocation: the node of the allocation may send the request.
func (r route) byAllocOwner() route {
	r.own, r.ofAlloc = true, true
	return r
}

// forWriters makes the right to write necessary to read: the answer has secrets.
func (r route) forWriters() route {
	r.needs = needsWrite
	return r
}

// byRegistrar makes the right to register nodes enough.
func (r route) byRegistrar() route {
	r.needs = needsNode
	return r
}

// asFile marks a route whose request or answer is a file with the whole state. Its callers need the right to
// write.
func (r route) asFile() route {
	r.bulk, r.needs = true, needsWrite
	return r
}

func (r route) allowed() times {
	if r.bulk {
		return times{body: snapshotTime, answer: snapshotTime}
	}
	return times{body: bodyTime, answer: answerTime}
}

// asStream marks a live stream.
func (r route) asStream() route {
	r.live = true
	return r
}

// afterGreeting lets the token be in the first message of a stream.
func (r route) afterGreeting() route {
	r.greets = true
	return r
}

// reading makes a PUT a read: its body is a query.
func (r route) reading() route {
	r.reads, r.needs = true, needsRead
	return r
}

// here makes the receiving server answer, and sets the right.
func (r route) here(needs right) route {
	r.local, r.needs = true, needs
	return r
}

func (r route) methods() []string {
	if r.method == http.MethodPut {
		return []string{http.MethodPut, http.MethodPost}
	}
	return []string{r.method}
}

// DrainPlanPath is the path of plans of drains. They take seconds.
const DrainPlanPath = "/v1/drains/plan"

// nodePoolsPath would otherwise be the path of a node.
const nodePoolsPath = "/v1/node/pools"

// otherRoute is the observed name of a request without a route.
const otherRoute = "other"

// notImplemented returns the text of an answer to a path that this system does not have, with the reason.
func notImplemented(r *http.Request) string {
	why := "docs/api.md lists the routes of this server"
	for _, one := range []struct{ prefix, why string }{
		{"/v1/acl/", "tokens are not in the state: a file that the servers read lists them"},
		{"/v1/node/pool/", "node pools cannot be managed: a pool exists as long as a node is in it"},
		{"/v1/jobs/parse", "send the job as JSON"},
		{"/v1/client/", "clients of this system do not implement this route"},
		{"/v1/deployment/", "jobs have no deployments"},
		{"/v1/service/", "the catalogue follows the allocations: stop the allocation to remove its instances"},
	} {
		if strings.HasPrefix(r.URL.Path, one.prefix) {
			why = one.why
		}
	}
	if strings.HasSuffix(r.URL.Path, "/dispatch") || strings.HasSuffix(r.URL.Path, "/periodic/force") {
		why = "parameterized and periodic jobs are not supported"
	}
	if strings.HasPrefix(r.URL.Path, "/v1/job/") && strings.HasSuffix(r.URL.Path, "/tag") {
		why = "versions of jobs have no tags"
	}
	return fmt.Sprintf("%s %s is not implemented: %s", r.Method, r.URL.Path, why)
}

// route registers the routes. A known path answers other methods with 405. An unknown path of the API
// is answered 501 with a sentence; the reference may have it. Any other path is answered 404.
func (h *Handler) route(all []route) {
	allowed := map[string][]string{}
	for _, one := range all {
		for _, method := range one.methods() {
			pattern := method + " " + one.path
			h.mux.HandleFunc(pattern, h.observedWithin(one.allowed(), pattern, h.serve(one)))
		}
		if one.path != nodePoolsPath { // the path of a node answers its other methods
			allowed[one.path] = append(allowed[one.path], one.methods()...)
		}
	}
	for path, methods := range allowed {
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		h.mux.HandleFunc(path, h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", allow)
			WriteError(w, http.StatusMethodNotAllowed, "Invalid method")
		}))
	}
	for _, path := range []string{"/{$}", "/ui"} {
		h.mux.HandleFunc("GET "+path, h.observed("GET /", h.showWelcome))
	}
	h.mux.HandleFunc("/v1/", h.observed(otherRoute, func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, http.StatusNotImplemented, notImplemented(r))
	}))
	h.mux.HandleFunc("/", h.observed(otherRoute, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
}

// listNothing answers a list of things that this system does not have, such as deployments.
func listNothing(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.Index(), body: func() (any, error) { return []wire.Nothing{}, nil }}
	})
}
