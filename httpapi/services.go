package httpapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// listServices answers GET /v1/services: the names of services, by namespace.
func listServices(q *request) error {
	return q.readCatalogue(catalogue.Query{Within: q.params.within}, func(all []catalogue.Instance) (any, error) {
		var lists []*wire.ServiceList
		for i, one := range all {
			if i == 0 || all[i-1].Namespace != one.Namespace {
				lists = append(lists, &wire.ServiceList{Namespace: string(one.Namespace)})
			}
			names := &lists[len(lists)-1].Services
			if n := len(*names); n == 0 || (*names)[n-1].ServiceName != one.Name {
				*names = append(*names, wire.ServiceName{ServiceName: one.Name, Tags: []string{}})
			}
			last := &(*names)[len(*names)-1]
			last.Tags = append(last.Tags, one.Tags...)
			slices.Sort(last.Tags)
			last.Tags = slices.Compact(last.Tags)
		}
		return page(q, listing.List[*wire.ServiceList]{
			Rows:    slices.Values(lists),
			Token:   func(l *wire.ServiceList) string { return l.Namespace },
			Compare: func(l *wire.ServiceList, token string) int { return cmp.Compare(l.Namespace, token) },
			Full:    func(l *wire.ServiceList) any { return l },
		}, func(l *wire.ServiceList) *wire.ServiceList { return l })
	})
}

// readService answers GET /v1/service/{name} with the instances of a service, by namespace and id. With ?choose=N|KEY
// it has the N instances that belong to the key.
func readService(q *request) error {
	count, key, err := choice(q.URL.Query().Get("choose"))
	if err != nil {
		return err
	}
	return q.readCatalogue(catalogue.Query{Within: q.params.within, Name: q.PathValue("name")}, func(all []catalogue.Instance) (any, error) {
		if count > 0 {
			all = catalogue.Choose(all, count, key)
		}
		return instancePage(q, all)
	})
}

// choice reads the parameter "N|KEY". Empty is no choice.
func choice(text string) (count int, key string, err error) {
	if text == "" {
		return 0, "", nil
	}
	number, key, ok := strings.Cut(text, "|")
	if count, err = strconv.Atoi(number); err != nil || !ok || count < 1 || key == "" {
		return 0, "", failure.Bad("choose must be a number and a key such as 2|key, not %s", failure.Quoted(text))
	}
	return count, key, nil
}

// listJobServices answers GET /v1/job/{id}/services, and listAllocServices GET /v1/allocation/{id}/services.
func listJobServices(q *request) error {
	return q.readCatalogue(catalogue.Query{Within: q.params.within, Job: q.jobKey()}, func(all []catalogue.Instance) (any, error) {
		return instancePage(q, all)
	})
}

func listAllocServices(q *request) error {
	everywhere := func(cluster.Namespace) bool { return true }
	query := catalogue.Query{Within: everywhere, Alloc: cluster.AllocID(q.PathValue("id"))}
	return q.readCatalogue(query, func(all []catalogue.Instance) (any, error) { return instancePage(q, all) })
}

func instancePage(q *request, all []catalogue.Instance) ([]*wire.ServiceRegistration, error) {
	return page(q, listing.List[catalogue.Instance]{
		Rows:    slices.Values(all),
		Token:   instanceToken,
		Compare: func(i catalogue.Instance, token string) int { return i.Compare(parseInstanceToken(token)) },
		Full:    func(i catalogue.Instance) any { return newRegistration(i) },
	}, newRegistration)
}

// instanceToken names an instance in a list: "namespace/name/place/id", with slashes of the namespace escaped.
func instanceToken(i catalogue.Instance) string {
	return fmt.Sprintf("%s/%s/%d/%s", url.PathEscape(string(i.Namespace)), i.Name, i.Place, i.ID)
}

// parseInstanceToken is the inverse of instanceToken. An invalid token gives some instance.
func parseInstanceToken(token string) (i catalogue.Instance) {
	namespace, rest, _ := strings.Cut(token, "/")
	i.Namespace = cluster.Namespace(unescape(namespace))
	i.Name, rest, _ = strings.Cut(rest, "/")
	place, id, _ := strings.Cut(rest, "/")
	i.Place, _ = strconv.Atoi(place) // zero is before all others
	i.ID = id
	return i
}

func newRegistration(i catalogue.Instance) *wire.ServiceRegistration {
	return &wire.ServiceRegistration{
		ID: i.ID, ServiceName: i.Name, Namespace: string(i.Namespace), NodeID: string(i.Node), Datacenter: i.Datacenter, JobID: string(i.Job),
		AllocID: string(i.Alloc), Tags: append([]string{}, i.Tags...), Address: i.Address, Port: i.Port, CreateIndex: i.CreateIndex, ModifyIndex: i.ModifyIndex,
	}
}

// readCatalogue answers with the selected instances, once they may have changed since the reader's index. The index of
// the answer is that of the state: the newest row of the answer may be deleted, and an instance that goes leaves no row.
//
// Instances that did not change since the reader's index are what the reader has. A wait ends when they are others.
func (q *request) readCatalogue(query catalogue.Query, body func([]catalogue.Instance) (any, error)) error {
	query.Region = q.options.Region
	var had []catalogue.Instance
	since, waits := q.params.index, false
	return q.read(func(s State) found {
		list, changed := catalogue.Read(s, query)
		if !waits && since > 0 && changed <= since && s.InHistory(since, 0) {
			if _, wrong := body(list); wrong == nil { // a bad filter is refused before the wait
				had, waits = list, true
			}
		}
		f := found{index: since, body: func() (any, error) {
			q.indexHeader(max(1, s.Index()))
			return body(list)
		}}
		if !waits || !catalogue.Equal(had, list) {
			f.index++
		}
		return f
	})
}
