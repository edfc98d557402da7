package httpapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listJobVersions answers GET /v1/job/{id}/versions: the current version, and those that allocations
// were placed for, newest first. The servers keep no others.
func listJobVersions(q *request) error {
	diffs, err := flag(q.URL.Query(), "diffs")
	if err != nil {
		return err
	}
	if diffs {
		return fail(http.StatusNotImplemented, "this server does not compute differences between versions of a job: omit diffs")
	}
	return q.read(func(s State) (found, error) {
		j := s.Job(q.jobKey())
		if j == nil {
			return found{index: s.TableIndex(TableJobs), missing: jobNotFound}, nil
		}
		return found{index: j.ModifyIndex, body: func() (any, error) {
			answer := wire.JobVersions{Index: max(1, j.ModifyIndex), KnownLeader: q.backend.Peers.Leader() != ""}
			for _, version := range versions(s, j) {
				answer.Versions = append(answer.Versions, summarize(s, version).job(q.options.Region))
			}
			return answer, nil
		}}, nil
	})
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

// noDeployment answers GET /v1/job/{id}/deployment: null, because no job has deployments.
func noDeployment(q *request) error {
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableJobs), body: func() (any, error) { return nil, nil }}, nil
	})
}

// noSubmission answers GET /v1/job/{id}/submission with 404: the servers do not keep the file of a job.
// A client must expect this answer, because a job that was registered as JSON has no file.
func noSubmission(q *request) error {
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableJobs), missing: "job source not found"}, nil
	})
}

// listNothing answers a list of things that this system does not have, such as deployments and
// services.
func listNothing(q *request) error {
	return q.read(func(s State) (found, error) {
		return found{index: s.Index(), body: func() (any, error) { return []wire.Nothing{}, nil }}, nil
	})
}

// listChecks answers GET /v1/client/allocation/{id}/checks: no allocation has checks.
func listChecks(q *request) error {
	return q.read(func(s State) (found, error) {
		a := s.Alloc(cluster.AllocID(q.PathValue("id")))
		if a == nil {
			return found{index: s.TableIndex(TableAllocs), missing: allocNotFound}, nil
		}
		return found{index: a.ModifyIndex, body: func() (any, error) { return map[string]wire.Nothing{}, nil }}, nil
	})
}

// listNodePools answers GET /v1/node/pools: the default pool and those of nodes. A pool exists as long
// as a node is in it.
func listNodePools(q *request) error {
	return q.read(func(s State) (found, error) {
		return found{index: s.TableIndex(TableNodes), body: func() (any, error) {
			return page(q, list[*wire.NodePool]{
				rows:    keep(slices.Values(nodePools(s)), func(p *wire.NodePool) bool { return strings.HasPrefix(p.Name, q.params.prefix) }),
				token:   func(p *wire.NodePool) string { return p.Name },
				compare: func(p *wire.NodePool, token string) int { return cmp.Compare(p.Name, token) },
				full:    func(p *wire.NodePool) any { return p },
			})
		}}, nil
	})
}

// nodePools returns the pools by name.
func nodePools(s State) []*wire.NodePool {
	names := map[string]bool{cluster.DefaultNodePool: true}
	for n := range s.Nodes() {
		names[cmp.Or(n.NodePool, cluster.DefaultNodePool)] = true
	}
	var pools []*wire.NodePool
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pools = append(pools, &wire.NodePool{Name: name, Meta: map[string]string{}, CreateIndex: 1, ModifyIndex: 1})
	}
	return pools
}
