package wire_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A request, the strategy of a node, the record of a drain and its journal have each field of a strategy.
func TestDrainSpec_everyField(t *testing.T) {
	t.Parallel()
	var spec cluster.DrainSpec
	v := reflect.ValueOf(&spec).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		default:
			f.SetInt(int64(7 + i))
		}
	}
	strategy := cluster.DrainStrategy{DrainSpec: spec, ForceDeadline: time.Unix(9, 0).UTC(), StartedAt: time.Unix(2, 0).UTC()}
	drain := &cluster.Drain{ID: "d1", NodeID: "n1", Strategy: strategy}
	node := wire.NewNode(&cluster.Node{ID: "n1", Drain: drain})
	story := wire.NewJournal(&journal.Journal{Events: []journal.Event{{Kind: journal.Requested, Strategy: &spec}}})
	for name, shown := range map[string]any{
		"the node": node.DrainStrategy, "the record": wire.NewDrain(drain, nil).Strategy, "the journal": story.Events[0].Strategy,
	} {
		var request wire.DrainRequest
		must.NoError(t, json.Unmarshal([]byte(`{"DrainSpec":`+string(encode(t, shown))+`}`), &request))
		must.Eq(t, spec, *request.Spec(), must.Sprint(name))
	}
	must.StrContains(t, story.Events[0].Text, "max_surge 9")
	must.Nil(t, new(wire.DrainRequest).Spec())
}

// A strategy without max_surge is as the compatible API has it.
func TestDrainSpec_withoutMaxSurge(t *testing.T) {
	t.Parallel()
	must.Eq(t, `{"Deadline":0,"IgnoreSystemJobs":false}`, string(encode(t, wire.DrainSpec{})))
	must.StrNotContains(t, string(encode(t, wire.DrainStrategy{})), "MaxSurge")
}
