package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobdiff"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobfields"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobversion"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/limits"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// jobKey is the job that the path names, in the namespace of the query string.
func (q *request) jobKey() cluster.JobKey {
	return cluster.JobKey{Namespace: q.params.namespace, ID: cluster.JobID(q.PathValue("id"))}
}

// listJobs answers GET /v1/jobs, by namespace, then id. The stubs depend on allocations and
// evaluations too.
func listJobs(q *request) error {
	return q.read(func(s State) found {
		index := max(s.TableIndex(TableJobs), s.TableIndex(TableAllocs), s.TableIndex(TableEvals))
		return found{index: index, body: func() (any, error) {
			return page(q, listing.List[*cluster.Job]{
				Rows: listing.Where(s.Jobs(), func(j *cluster.Job) bool {
					return q.params.within(j.Namespace) && strings.HasPrefix(string(j.ID), q.params.prefix)
				}),
				Token:   func(j *cluster.Job) string { return jobToken(j.Key()) },
				Compare: func(j *cluster.Job, token string) int { return j.Key().Compare(parseJobToken(token)) },
				Full:    func(j *cluster.Job) any { return summarize(s, j).job(q.options.Region) },
			}, func(j *cluster.Job) *wire.JobListStub { return summarize(s, j).stub() })
		}}
	})
}

// jobToken names a job in a list: "namespace/id", with slashes of their own escaped.
func jobToken(k cluster.JobKey) string {
	return url.PathEscape(string(k.Namespace)) + "/" + url.PathEscape(string(k.ID))
}

// parseJobToken is the inverse of jobToken. An invalid token gives some key.
func parseJobToken(token string) cluster.JobKey {
	namespace, id, _ := strings.Cut(token, "/")
	return cluster.JobKey{Namespace: cluster.Namespace(unescape(namespace)), ID: cluster.JobID(unescape(id))}
}

func unescape(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// readJob answers GET /v1/job/{id}. The status of the job depends on its allocations and evaluations.
func readJob(q *request) error {
	return q.read(func(s State) found {
		j := s.Job(q.jobKey())
		if j == nil {
			return found{index: s.TableIndex(TableJobs), missing: jobNotFound}
		}
		sum := summarize(s, j)
		return found{index: sum.index, rows: sum.rows, body: func() (any, error) { return sum.job(q.options.Region), nil }}
	})
}

// readJobSummary answers GET /v1/job/{id}/summary.
func readJobSummary(q *request) error {
	return q.read(func(s State) found {
		j := s.Job(q.jobKey())
		if j == nil {
			return found{index: s.TableIndex(TableJobs), missing: jobNotFound}
		}
		sum := summarize(s, j)
		return found{index: sum.index, rows: sum.rows, body: func() (any, error) {
			w := sum.summary()
			w.GivenUp, w.Rollouts, w.ControllerCalls = givenUp(q, s, j), rollouts(q, s, j), controllerCalls(q, ofJob(j))
			w.Rescheduled = delays(s, j)
			return w, nil
		}}
	})
}

// registerJob answers PUT /v1/jobs and PUT /v1/job/{id}: a job or its next version. Warnings in the
// answer list fields without effect.
func registerJob(q *request) error {
	var body wire.JobRegisterRequest
	warnings, err := decodeJob(q, &body)
	if err != nil {
		return err
	}
	job, err := jobOf(q, body.Job)
	if err != nil {
		return err
	}
	state, err := q.state()
	if err != nil {
		return err
	}
	priority, err := evalPriority(body.EvalPriority)
	if err != nil {
		return err
	}
	at := preserve(state, body, job)
	if err := job.Validate(); err != nil { // what it preserves may not fit the rest
		return failure.New(http.StatusBadRequest, err.Error())
	}
	job, more, err := atPresent(q, state, job)
	if err != nil {
		return err
	}
	warnings = append(warnings, more...)
	done, err := q.backend.Writer.RegisterJob(q.Context(), job, cluster.JobRegistration{At: at, EvalPriority: priority})
	if err != nil {
		return err
	}
	answer := jobResponse(done, cmp.Or(done.Unchanged, done.Index))
	answer.Warnings = strings.Join(warnings, "\n")
	return q.written(done.Index, answer)
}

// atPresent returns the job as the present cluster version keeps it, and warnings of what has no effect now.
func atPresent(q *request, s State, j *cluster.Job) (kept *cluster.Job, warnings []string, err error) {
	kept, warnings, err = jobversion.At(j, s.ClusterVersion())
	if err != nil {
		return nil, nil, failure.New(http.StatusServiceUnavailable, err.Error())
	}
	more := append(shortage.Unknown(s, kept), catalogue.Warnings(s.Nodes(), kept, q.options.Region)...)
	return kept, slices.Concat(more, shortLeashes(kept), warnings), nil
}

// preserve takes the counts of groups and the resources of tasks from the registered job, as the request has it.
// Groups and tasks belong together by name. It returns the index that the registered job must still have when
// the next version is applied, or nil for any.
func preserve(s State, r wire.JobRegisterRequest, next *cluster.Job) (at *uint64) {
	if r.EnforceIndex {
		at = &r.JobModifyIndex
	}
	before := s.Job(next.Key())
	if before == nil || !r.PreserveCounts && !r.PreserveResources {
		return at
	}
	for _, g := range next.TaskGroups {
		old := before.Group(g.Name)
		if old == nil {
			continue
		}
		if r.PreserveCounts {
			g.Count = old.Count
		}
		if r.PreserveResources {
			preserveResources(old, g)
		}
	}
	if at == nil {
		at = new(before.JobModifyIndex)
	}
	return at
}

func preserveResources(old, next *cluster.TaskGroup) {
	for _, t := range next.Tasks {
		for _, o := range old.Tasks {
			if o.Name == t.Name {
				t.Resources, t.MemoryMaxMB, t.Cores, t.Devices, t.Ports = o.Resources, o.MemoryMaxMB, o.Cores, o.Devices, o.Ports
			}
		}
	}
}

// decodeJob decodes a body with a job, and returns warnings of what has no effect. It refuses a job with fields
// that do harm if they are ignored.
func decodeJob(q *request, into any) (warnings []string, err error) {
	body, warnings, err := jobfields.Check(q.body, q.options.Region)
	if err != nil {
		return nil, err
	}
	return warnings, jsonbody.DecodeDeep(body, into)
}

// jobOf converts the job of a body, if it is valid and within the limits, and its node pool has a node.
func jobOf(q *request, w *wire.Job) (*cluster.Job, error) {
	refuse := func(text string) (*cluster.Job, error) { return nil, failure.New(http.StatusBadRequest, text) }
	if w == nil {
		return refuse("Job must be specified")
	}
	if w.Namespace == nil || *w.Namespace == "" {
		w.Namespace = new(string(q.params.namespace))
	}
	if err := limits.Job(w); err != nil {
		return refuse(err.Error())
	}
	if err := jsonbody.CheckDepth(q.body); err != nil {
		return nil, err
	}
	if err := limits.Numbers(w); err != nil {
		return refuse(err.Error())
	}
	w.InRegion(q.options.Region)
	job, err := w.Job()
	if err == nil {
		err = job.Validate()
	}
	if err == nil {
		err = feasible.Check(job)
	}
	if err == nil {
		err = limits.Counts(job)
	}
	if err != nil {
		return refuse(err.Error())
	}
	if path := q.PathValue("id"); path != "" && path != string(job.ID) {
		return refuse("Job ID does not match")
	}
	if job.Namespace == everyNamespace {
		return refuse("a job needs one namespace")
	}
	return job, poolExists(q, job)
}

// validateJob answers PUT /v1/validate/job: what a registration of the job would refuse, and its warnings. It
// writes nothing.
func validateJob(q *request) error {
	if err := jsonbody.DecodeDeep(q.body, &map[string]json.RawMessage{}); err != nil {
		return err
	}
	var body wire.JobValidateRequest
	warnings, err := decodeJob(q, &body)
	var job *cluster.Job
	if err == nil {
		job, err = jobOf(q, body.Job)
	}
	if err == nil {
		state, failed := q.state()
		if failed != nil {
			return failed
		}
		var more []string
		if _, more, failed = atPresent(q, state, job); failed != nil {
			return failed
		}
		warnings = append(warnings, more...)
	}
	answer := wire.JobValidateResponse{DriverConfigValidated: true, ValidationErrors: []string{}, Warnings: strings.Join(warnings, "\n")}
	if refusal, is := errors.AsType[*failure.Failure](err); is && refusal.Code == http.StatusBadRequest {
		answer.Error, answer.ValidationErrors = refusal.Text, strings.Split(refusal.Text, "\n")
	} else if err != nil {
		return err
	}
	return q.answer(answer)
}

// poolExists refuses a job for a node pool that no node is in: it would wait for ever.
func poolExists(q *request, j *cluster.Job) error {
	if j.NodePool == cluster.DefaultNodePool {
		return nil
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	if j.NodePool == cluster.AllNodePools {
		if v := s.ClusterVersion(); v < cluster.VersionOfAllNodePools {
			return failure.Newf(http.StatusServiceUnavailable, "the cluster has version %d until all its servers are upgraded, and jobs in all node pools need version %d: "+
				"upgrade the servers, then register the job", v, cluster.VersionOfAllNodePools)
		}
		return nil
	}
	for n := range s.Nodes() {
		if n.NodePool == j.NodePool {
			return nil
		}
	}
	return failure.Bad("no node is in the node pool %q of job %q", j.NodePool, j.ID)
}

// evaluateJob answers PUT /v1/job/{id}/evaluate: the scheduler evaluates the job again. The path
// names the job; the body is ignored.
func evaluateJob(q *request) error {
	done, err := q.backend.Writer.EvaluateJob(q.Context(), q.jobKey())
	if err != nil {
		return orNotFound(err, http.StatusNotFound, jobNotFound)
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	version := uint64(0)
	if j := s.Job(q.jobKey()); j != nil {
		version = j.JobModifyIndex
	}
	return q.written(done.Index, jobResponse(done, version))
}

// evalPriority checks the priority of an evaluation; zero is that of its job.
func evalPriority(p int) (int, error) {
	if p < 0 || p > 100 {
		return 0, failure.Bad("the priority of an evaluation is 1 to 100, or 0 for that of the job, not %d", p)
	}
	return p, nil
}

// stopJob answers DELETE /v1/job/{id}: the job stops, or with ?purge=true is deleted with its
// evaluations and ended allocations.
func stopJob(q *request) error {
	purge, err := flag(q.URL.Query(), "purge")
	if err != nil {
		return err
	}
	if err := keepsDelays(q.URL.Query()); err != nil {
		return err
	}
	priority, err := 0, error(nil)
	if text := q.URL.Query().Get("eval_priority"); text != "" {
		if priority, err = strconv.Atoi(text); err != nil {
			return failure.Bad("eval_priority is not a number: %s", failure.Quoted(text))
		}
	}
	if priority, err = evalPriority(priority); err != nil {
		return err
	}
	done, err := q.backend.Writer.StopJob(q.Context(), q.jobKey(), cluster.JobStop{Purge: purge, EvalPriority: priority})
	if err != nil {
		return orNotFound(err, http.StatusNotFound, jobNotFound)
	}
	return q.written(done.Index, jobResponse(done, done.Index))
}

func jobResponse(done cluster.Written, modified uint64) wire.JobResponse {
	w := wire.JobResponse{EvalCreateIndex: done.EvalIndex(), JobModifyIndex: modified, Index: done.Index}
	if len(done.Evals) > 0 {
		w.EvalID = string(done.Evals[0])
	}
	return w
}

// listNamespaces answers GET /v1/namespaces: the default namespace and those of jobs. There is no
// call to make one.
func listNamespaces(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableJobs), body: func() (any, error) { return namespaces(s, q.params.prefix), nil }}
	})
}

func namespaces(s State, prefix string) []wire.Namespace {
	names := map[cluster.Namespace]bool{cluster.DefaultNamespace: true}
	for j := range s.Jobs() {
		names[j.Namespace] = true
	}
	list := []wire.Namespace{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasPrefix(string(name), prefix) {
			list = append(list, wire.Namespace{Name: string(name), CreateIndex: 1, ModifyIndex: 1})
		}
	}
	return list
}

// listJobVersions answers GET /v1/job/{id}/versions: the current version, and those that allocations
// were placed for, newest first. The servers keep no others.
func listJobVersions(q *request) error {
	diffs, err := flag(q.URL.Query(), "diffs")
	if err != nil {
		return err
	}
	base, err := diffBase(q.URL.Query())
	if err != nil {
		return err
	}
	return q.read(func(s State) found {
		j := s.Job(q.jobKey())
		if j == nil {
			return found{index: s.TableIndex(TableJobs), missing: jobNotFound}
		}
		sum := summarize(s, j)
		return found{index: sum.index, rows: sum.rows, body: func() (any, error) {
			answer := wire.JobVersions{Index: max(1, j.ModifyIndex), KnownLeader: q.backend.Peers.Leader() != ""}
			known := versions(s, j)
			var to *cluster.Job
			if diffs && base != nil {
				var err error
				if to, err = versionOf(j, known, *base); err != nil {
					return nil, err
				}
			}
			for i, version := range known {
				answer.Versions = append(answer.Versions, summarize(s, version).job(q.options.Region))
				if diffs && i > 0 {
					newer := known[i-1].Copy()
					newer.Canonicalize() // an older server may not have filled in a default of today
					answer.Diffs = append(answer.Diffs, jobdiff.Of(cmp.Or(to, version), newer))
				}
			}
			return answer, nil
		}}
	})
}

// versionOf returns the version with the number. The error names those that the servers have.
func versionOf(j *cluster.Job, known []*cluster.Job, number uint64) (*cluster.Job, error) {
	var numbers []string
	for _, v := range known {
		if v.Version == number {
			return v, nil
		}
		numbers = append(numbers, strconv.FormatUint(v.Version, 10))
	}
	return nil, failure.Newf(http.StatusNotFound, "job %q has no version %d any more: the servers keep the current version and those of allocations (%s); register the older file again",
		j.ID, number, strings.Join(numbers, ", "))
}

// versions returns the known versions of a job, newest first.
func versions(s State, j *cluster.Job) []*cluster.Job {
	known := map[uint64]*cluster.Job{}
	for a := range s.AllocsByJob(j.Key()) {
		if a.Job != nil && a.Job.CreateIndex == j.CreateIndex { // not of an earlier job of the same name
			known[a.Job.Version] = a.Job
		}
	}
	known[j.Version] = j
	return slices.SortedFunc(maps.Values(known), func(a, b *cluster.Job) int { return cmp.Compare(b.Version, a.Version) })
}

// maxJobChange bounds the body of a request that changes a job without its file, in bytes.
const maxJobChange = 64 << 10

// revertJob answers PUT /v1/job/{id}/revert: the next version of the job has the work of an earlier one.
func revertJob(q *request) error {
	var body wire.JobRevertRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if body.JobID != "" && body.JobID != q.PathValue("id") {
		return failure.Bad("Job ID does not match")
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	j := s.Job(q.jobKey())
	switch prior := body.EnforcePriorVersion; {
	case j == nil:
		return failure.New(http.StatusNotFound, jobNotFound)
	case prior != nil && *prior != j.Version:
		return failure.Newf(http.StatusConflict, "Current job has version %d; enforcing version %d", j.Version, *prior)
	case body.JobVersion == j.Version:
		return failure.Bad("can't revert to current version: job %q has version %d", j.ID, j.Version)
	}
	prior, err := versionOf(j, versions(s, j), body.JobVersion)
	if err != nil {
		return err
	}
	next := prior.Copy()
	next.Stop = false
	if err := poolExists(q, next); err != nil {
		return err
	}
	return changeJob(q, j, next)
}

// changeJob registers the next version of a registered job, unless that one has changed.
func changeJob(q *request, registered, next *cluster.Job) error {
	done, err := q.backend.Writer.RegisterJob(q.Context(), next, cluster.JobRegistration{At: &registered.JobModifyIndex})
	if err != nil {
		return err
	}
	return q.written(done.Index, jobResponse(done, cmp.Or(done.Unchanged, done.Index)))
}

// noDeployment answers GET /v1/job/{id}/deployment: null, because no job has deployments.
func noDeployment(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableJobs), body: func() (any, error) { return nil, nil }}
	})
}

// noSubmission answers GET /v1/job/{id}/submission with 404: the servers do not keep the file of a job.
// A client must expect this answer, because a job that was registered as JSON has no file.
func noSubmission(q *request) error {
	return q.read(func(s State) found {
		return found{index: s.TableIndex(TableJobs), missing: "job source not found"}
	})
}
