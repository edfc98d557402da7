package httpapi

import (
	"iter"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// maxMatches bounds the matches of each kind.
const maxMatches = 20

// searchContexts are the kinds of things that can be searched for, in order.
func searchContexts() []string {
	return []string{"nodes", "jobs", "allocs", "evals", "plugins", "volumes"}
}

// search answers POST /v1/search: the ids that begin with a prefix. Shells complete with
// it.
func search(q *request) error {
	var body wire.SearchRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	contexts := searchContexts()
	if body.Context != "" && body.Context != "all" {
		if !slices.Contains(contexts, body.Context) {
			return failure.Bad("context must be one of %q or %q, not %q", contexts, "all", body.Context)
		}
		contexts = []string{body.Context}
	}
	return q.read(func(s State) found {
		index := max(s.TableIndex(TableNodes), s.TableIndex(TableJobs), s.TableIndex(TableAllocs), s.TableIndex(TableEvals), s.TableIndex(TableVolumes))
		return found{index: index, body: func() (any, error) {
			w := wire.SearchResponse{Matches: map[string][]string{}, Truncations: map[string]bool{}, Index: max(1, index), KnownLeader: q.backend.Peers.Leader() != ""}
			for _, context := range contexts {
				w.Matches[context], w.Truncations[context] = firstMatches(ids(q, s, context), body.Prefix)
			}
			return w, nil
		}}
	})
}

// ids yields the ids of one kind, in order.
func ids(q *request, s State, context string) iter.Seq[string] {
	switch context {
	case "nodes":
		return idsOf(s.Nodes(), func(n *cluster.Node) (string, bool) { return string(n.ID), true })
	case "jobs":
		return idsOf(s.Jobs(), func(j *cluster.Job) (string, bool) { return string(j.ID), q.params.within(j.Namespace) })
	case "allocs":
		return idsOf(s.Allocs(), func(a *cluster.Allocation) (string, bool) { return string(a.ID), q.params.within(a.Namespace) })
	case "plugins":
		return idsOf(slices.Values(volumes.Plugins(s.Nodes())), func(p *volumes.Plugin) (string, bool) { return string(p.ID), true })
	case "volumes":
		return idsOf(s.Volumes(), func(v *cluster.Volume) (string, bool) { return string(v.ID), q.params.within(v.Namespace) })
	}
	return idsOf(s.Evals(), func(e *cluster.Evaluation) (string, bool) { return string(e.ID), q.params.within(e.Namespace) })
}

// idsOf yields the ids of the rows in the namespaces of the request.
func idsOf[Row any](rows iter.Seq[Row], id func(Row) (text string, within bool)) iter.Seq[string] {
	return func(yield func(string) bool) {
		for row := range rows {
			if text, within := id(row); within && !yield(text) {
				return
			}
		}
	}
}

// firstMatches are the first ids with the prefix, never nil, and whether there are more.
func firstMatches(ids iter.Seq[string], prefix string) (matches []string, more bool) {
	matches = []string{}
	for id := range ids {
		if !strings.HasPrefix(id, prefix) {
			continue
		}
		if len(matches) == maxMatches {
			return matches, true
		}
		matches = append(matches, id)
	}
	return matches, false
}
