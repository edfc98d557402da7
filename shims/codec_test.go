package shims_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func encode(t testing.TB, m shims.Message) []byte {
	t.Helper()
	data, err := shims.Encode(m)
	must.NoError(t, err)
	return data
}

func decode[M shims.Message](t testing.TB, data []byte) M {
	t.Helper()
	m, err := shims.Decode(data)
	must.NoError(t, err)
	return m.(M)
}

func TestCodec_EveryFieldOfEveryMessageSurvives(t *testing.T) {
	t.Parallel()
	types := make(map[shims.MessageType]bool)
	for _, m := range fullMessages() {
		t.Run(m.Type().String(), func(t *testing.T) {
			data := encode(t, m)
			got := decode[shims.Message](t, data)
			must.Eq(t, m, got)
			must.True(t, reflect.DeepEqual(m, got), must.Sprint("equal, also in fields that Equal methods ignore"))
			must.True(t, bytes.Equal(data, encode(t, got)), must.Sprint("equal messages give equal data"))
		})
		types[m.Type()] = true
	}
	for n := range 256 {
		named := !strings.HasPrefix(shims.MessageType(n).String(), "message type")
		must.Eq(t, named, types[shims.MessageType(n)], must.Sprintf("type %d", n))
	}
}

func TestCodec_EmptyMessagesSurviveOrAreIncomplete(t *testing.T) {
	t.Parallel()
	incomplete := map[string]string{
		"NodeRegister": "encoding NodeRegister: node is missing",
		"JobRegister":  "encoding JobRegister: job is missing",
		"ApplyPlan":    "encoding ApplyPlan: evaluation is missing",

		"VolumeRegister": "encoding VolumeRegister: volume is missing",

		"PauseDrains":         "encoding PauseDrains: the time of a pause is missing",
		"RaiseClusterVersion": "encoding RaiseClusterVersion: a raise to cluster version 0",
	}
	for _, m := range emptyMessages() {
		data, err := shims.Encode(m)
		if want := incomplete[m.Type().String()]; want != "" {
			must.EqError(t, err, want)
			continue
		}
		must.NoError(t, err)
		must.Eq(t, m, decode[shims.Message](t, data))
	}
}

func TestCodec_NumbersOfTheCompatibleSystem(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]uint8{
		"NodeRegister": 0, "NodeUpdateStatus": 2, "NodeUpdateDrain": 3, "EvalUpdate": 6, "AllocClientUpdate": 9, "ApplyPlan": 13,
		"AllocUpdateDesiredTransition": 27, "NodeUpdateEligibility": 28, "NodesDrainComplete": 29, "NodeDeregister": 31,
	} {
		must.Eq(t, name, shims.MessageType(number).String())
	}
}

func TestCodec_TimesKeepNanosecondsAndLoseTheirZone(t *testing.T) {
	t.Parallel()
	west := time.FixedZone("west", -7*3600)
	for _, at := range []time.Time{
		{},
		time.Unix(0, 0),
		time.Date(2030, 1, 2, 3, 4, 5, 123456789, west),
		time.Date(1850, 1, 2, 3, 4, 5, 1, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999999, west),
	} {
		m := &shims.NodeUpdateStatus{At: at, Node: "n1"}
		got := decode[*shims.NodeUpdateStatus](t, encode(t, m)).At
		must.True(t, at.Equal(got), must.Sprintf("%s became %s", at, got))
		must.Eq(t, at.IsZero(), got.IsZero())
		must.Eq(t, time.UTC, got.Location())
	}
}

func TestCodec_NilIsNotEmpty(t *testing.T) {
	t.Parallel()
	none := &cluster.Node{ID: "n1"}
	empty := &cluster.Node{ID: "n1", Meta: map[string]string{}, Events: []cluster.NodeEvent{}}
	for _, node := range []*cluster.Node{none, empty} {
		got := decode[*shims.NodeRegister](t, encode(t, &shims.NodeRegister{Node: node})).Node
		must.Eq(t, node.Meta == nil, got.Meta == nil)
		must.Eq(t, node.Events == nil, got.Events == nil)
	}
}

// placing returns a plan that places n allocations of one job, as a scheduler
// makes it: they share the job.
func placing(n int) *shims.ApplyPlan {
	job := &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 50, Datacenters: []string{strings.Repeat("dc", 500)}}
	plan := &shims.ApplyPlan{Plan: cluster.Plan{Eval: &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web"}}}
	for i := range n {
		plan.Places = append(plan.Places, &cluster.Allocation{ID: cluster.AllocID(fmt.Sprint(i)), JobID: "web", Job: job})
	}
	return plan
}

func TestCodec_AJobThatAllocationsShareIsWrittenOnce(t *testing.T) {
	t.Parallel()
	plan := placing(100)
	other := &cluster.Job{ID: "other"}
	plan.Places[7].Job = other
	plan.Places[8].Job = nil
	data := encode(t, plan)
	must.Eq(t, 1, bytes.Count(data, []byte(strings.Repeat("dc", 500))))

	got := decode[*shims.ApplyPlan](t, data)
	must.Eq(t, plan, got)
	must.True(t, got.Places[0].Job == got.Places[99].Job, must.Sprint("decoded allocations share it"))
	must.NotNil(t, plan.Places[0].Job, must.Sprint("encoding does not change its input"))
}

func TestCodec_AMarkCostsLittleMoreThanItsID(t *testing.T) {
	t.Parallel()
	marks := &shims.AllocUpdateDesiredTransition{}
	for i := range 1000 {
		node := i % 10
		marks.Marks.Marks = append(marks.Marks.Marks, rules.Mark{
			Alloc: cluster.AllocID(fmt.Sprintf("%036d", i)),
			Group: cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: cluster.JobID(fmt.Sprintf("job-%d", i/100))}, Name: "web"},
			Node:  cluster.NodeID(fmt.Sprintf("%036d", node)), Drain: cluster.DrainID(fmt.Sprintf("%036d", 100+node)), Revision: 1 << 20, Class: cluster.MarkPaced,
		})
	}
	data := encode(t, marks)
	must.Less(t, 45*1000, len(data), must.Sprint("bytes of an entry of 1,000 marks"))
	must.Eq(t, marks, decode[*shims.AllocUpdateDesiredTransition](t, data))
}

func TestCodec_MarksKeepTheirOrder(t *testing.T) {
	t.Parallel()
	group := func(name string) cluster.GroupKey {
		return cluster.GroupKey{Job: cluster.JobKey{ID: "job"}, Name: name}
	}
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{Marks: []rules.Mark{
		{Alloc: "3", Group: group("b"), Drain: "d2"}, {Alloc: "1", Group: group("a"), Drain: "d1"}, {Alloc: "2", Group: group("b"), Drain: "d1"},
	}}}
	must.Eq(t, m, decode[*shims.AllocUpdateDesiredTransition](t, encode(t, m)))
}

// body encodes fields as a message's body, without the codec's types.
func body(t testing.TB, fields map[string]any) []byte {
	t.Helper()
	handle := new(codec.MsgpackHandle)
	handle.WriteExt = true
	var out []byte
	must.NoError(t, codec.NewEncoderBytes(&out, handle).Encode(fields))
	return out
}

func entry(t shims.MessageType, version byte, body []byte) []byte {
	return append([]byte{byte(t), version}, body...)
}

func TestCodec_BrokenEntries(t *testing.T) {
	t.Parallel()
	status := encode(t, &shims.NodeUpdateStatus{Node: "n1"})
	eval := map[string]any{"ID": "e1"}
	run := []any{map[string]any{"Group": map[string]any{}, "Marks": []any{[]any{"a1", 1, 2}}}}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "0 bytes are no entry"},
		{"only a type", []byte{2}, "1 bytes are no entry"},
		{"unknown type", entry(77, 1, nil), "unknown type 77"},
		{"version of another message", entry(shims.NodeUpdateStatusType, 2, status[2:]), "NodeUpdateStatus of version 1 names version 2"},
		{"version zero", entry(shims.NodeUpdateStatusType, 0, status[2:]), "NodeUpdateStatus of version 1 names version 0"},
		{"raise to nothing", entry(shims.RaiseClusterVersionType, 2, body(t, map[string]any{"Version": 1})), "a raise to cluster version 1"},
		{"no body", status[:2], "EOF"},
		{"cut short", status[:len(status)-1], "EOF"},
		{"extra bytes", append(bytes.Clone(status), 0xc0), "1 bytes follow the message"},
		{"not a message", entry(shims.NodeUpdateStatusType, 1, []byte{0x2a}), ""},
		{"unknown field", entry(shims.NodeUpdateStatusType, 1, body(t, map[string]any{"Nodes": "n1"})), "Nodes"},
		{"wrong kind of field", entry(shims.NodeUpdateStatusType, 1, body(t, map[string]any{"Node": map[string]any{"ID": "n1"}})), ""},
		{"missing evaluation", entry(shims.EvalUpdateType, 1, body(t, map[string]any{"Evals": []any{eval, nil}})), "evaluation 1 is missing"},
		{"missing node", entry(shims.NodeRegisterType, 1, body(t, map[string]any{})), "node is missing"},
		{"registered draining", entry(shims.NodeRegisterType, 1, body(t, map[string]any{"Node": map[string]any{"Drain": map[string]any{}}})), "cannot carry a drain"},
		{"missing job", entry(shims.JobRegisterType, 1, body(t, map[string]any{})), "job is missing"},
		{"missing allocation", entry(shims.ApplyPlanType, 1, body(t, map[string]any{
			"Plan": map[string]any{"Eval": eval, "Places": []any{nil}}, "JobOf": []any{0}})), "allocation 0 is missing"},
		{"jobs for no allocations", entry(shims.ApplyPlanType, 1, body(t, map[string]any{
			"Plan": map[string]any{"Eval": eval}, "JobOf": []any{0}})), "0 allocations with 1 jobs"},
		{"job out of range", entry(shims.ApplyPlanType, 1, body(t, map[string]any{
			"Plan": map[string]any{"Eval": eval, "Places": []any{map[string]any{}}}, "JobOf": []any{1}})), "job 1 of 0"},
		{"job before the first", entry(shims.ApplyPlanType, 1, body(t, map[string]any{
			"Plan": map[string]any{"Eval": eval, "Places": []any{map[string]any{}}}, "JobOf": []any{-1}})), "job -1 of 0"},
		{"drain out of range", entry(shims.AllocUpdateDesiredTransitionType, 1, body(t, map[string]any{"Runs": run})), "drain 1 of 0"},
		{"mark with an extra field", entry(shims.AllocUpdateDesiredTransitionType, 1, body(t, map[string]any{
			"Drains": []any{[]any{"n1", "d1", 3, 4}}})), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := shims.Decode(c.data)
			must.ErrorIs(t, err, shims.ErrBroken)
			must.StrContains(t, err.Error(), c.want)
			must.Nil(t, m)
		})
	}
}

func TestCodec_AMissingFieldIsZero(t *testing.T) {
	t.Parallel()
	got := decode[*shims.NodeUpdateStatus](t, entry(shims.NodeUpdateStatusType, 1, body(t, map[string]any{"Node": "n1"})))
	must.Eq(t, &shims.NodeUpdateStatus{Node: "n1"}, got)
}

func TestCodec_UnknownIgnorableTypesAreSkipped(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{entry(shims.IgnorableFlag|77, 1, nil), entry(shims.IgnorableFlag, 9, []byte{0xff})} {
		m, err := shims.Decode(data)
		must.NoError(t, err)
		must.Nil(t, m)
	}
}

func TestCodec_NestingIsBounded(t *testing.T) {
	t.Parallel()
	deep := append([]byte{0x81, 0xa4, 'N', 'o', 'd', 'e', 0x81, 0xa4, 'M', 'e', 't', 'a'}, bytes.Repeat([]byte{0x91}, 1<<20)...)
	_, err := shims.Decode(entry(shims.NodeRegisterType, 1, deep))
	must.ErrorIs(t, err, shims.ErrBroken)
}

func TestCodec_ANilMessageIsNotEncoded(t *testing.T) {
	t.Parallel()
	_, err := shims.Encode(nil)
	must.EqError(t, err, "encoding an entry: no message")
}
