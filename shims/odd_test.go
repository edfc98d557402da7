package shims_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Well-formed messages with missing, huge, negative or foreign values are refused or have little
// effect, and cause no panic.
//
//race:skip one goroutine
func TestFSM_ReplicasAnswerOddMessagesAlike(t *testing.T) {
	t.Parallel()
	start := newHistory(t, shims.FSMConfig{})
	for i, data := range randomLog(t, 3, 150) {
		_, err := start.fsm.ApplyEntry(uint64(i+1), data)
		must.NoError(t, err)
		start.next++
	}
	for _, m := range claimVolumes() {
		_, err := start.fsm.ApplyEntry(start.next, encode(t, m))
		must.NoError(t, err)
		start.next++
	}
	must.Len(t, manyVolumes, slices.Collect(start.state().WorkView().Claims()))
	a, b := start, newHistory(t, shims.FSMConfig{})
	restore(t, b.fsm, persist(t, a.fsm))
	b.next = a.next

	sane, odd := newLogWriter(5), newOddFiller(7, a.state())
	applied := make(map[shims.MessageType]int)
	for round := range 400 {
		for i, m := range append(emptyMessages(), sane.next(a.state())) {
			if i < len(emptyMessages()) {
				odd.fill(reflect.ValueOf(m).Elem())
			}
			data, err := shims.Encode(m)
			if err != nil {
				continue
			}
			want, err := a.fsm.ApplyEntry(a.next, data)
			must.NoError(t, err)
			got, err := b.fsm.ApplyEntry(b.next, data)
			must.NoError(t, err)
			must.True(t, reflect.DeepEqual(want, got), must.Sprintf("%s is answered %+v and %+v", m.Type(), want, got))
			a.next++
			b.next++
			if _, refused := want.(shims.Refused); !refused {
				applied[m.Type()]++
			}
		}
		if round%100 == 99 {
			must.Eq(t, dump(t, a.fsm), dump(t, b.fsm))
			restore(t, b.fsm, persist(t, a.fsm))
			must.Eq(t, dump(t, a.fsm), dump(t, b.fsm), must.Sprint("any state can be restored"))
		}
	}
	for _, m := range emptyMessages() {
		must.Positive(t, applied[m.Type()], must.Sprintf("%s was never applied: %v", m.Type(), applied))
	}
}

// manyVolumes are enough volumes for odd messages to find some before others have deleted them all.
const manyVolumes = 20

// claimVolumes registers volumes, and places an allocation that claims them.
func claimVolumes() (messages []shims.Message) {
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	j := &cluster.Job{ID: "claims", TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t"}}}}}
	for i := range manyVolumes {
		id := cluster.VolumeID(fmt.Sprint("data", i))
		messages = append(messages, &shims.VolumeRegister{At: noon, Volume: &cluster.Volume{
			ID: id, ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode},
		}})
		j.TaskGroups[0].Volumes = append(j.TaskGroups[0].Volumes, cluster.VolumeRequest{Name: string(id), Type: cluster.VolumeCSI, Source: id, Capability: mode})
	}
	j.Canonicalize()
	eval := &cluster.Evaluation{ID: "claims", Namespace: j.Namespace, JobID: j.ID, Status: cluster.EvalPending}
	node := &cluster.Node{ID: "claims", Status: cluster.NodeReady, StoragePlugins: []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}}}
	place := &cluster.Allocation{ID: "claims", Namespace: j.Namespace, JobID: j.ID, TaskGroup: "g", NodeID: node.ID, Name: "claims.g[0]"}
	return append(messages, &shims.NodeRegister{At: noon, Node: node},
		&shims.JobRegister{Job: j, Evals: []*cluster.Evaluation{eval}},
		&shims.ApplyPlan{Plan: cluster.Plan{At: noon, Eval: eval, SnapshotIndex: 1 << 40, Places: []*cluster.Allocation{place}}})
}

// oddFiller sets every field under a value to an unusual value: the zero value, the smallest and
// largest numbers, and ids of rows in the state, often of the wrong type.
type oddFiller struct {
	random *rand.Rand
	// words are the possible strings of each type; anyWord holds all of them.
	words   map[reflect.Type][]string
	anyWord []string
}

func newOddFiller(seed uint64, s *statestore.Snapshot) *oddFiller {
	f := &oddFiller{random: rand.New(rand.NewPCG(seed, 9)), words: make(map[reflect.Type][]string)}
	addWords(f, "", "x", "\x00", "a", "b")
	addWords(f, cluster.DesiredRun, cluster.DesiredStop, cluster.DesiredEvict)
	addWords(f, cluster.ClientPending, cluster.ClientRunning, cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost, cluster.ClientUnknown)
	addWords(f, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected)
	addWords(f, cluster.NodeEligible, cluster.NodeIneligible)
	addWords(f, cluster.EvalPending, cluster.EvalBlocked, cluster.EvalComplete)
	addWords(f, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch)
	addWords(f, cluster.HealthChecks)
	addWords(f, cluster.Namespace("default"), cluster.Namespace("other"))
	for n := range s.Nodes() {
		addWords(f, n.ID)
		if n.Draining() {
			addWords(f, n.Drain.ID)
		}
	}
	for j := range s.Jobs() {
		addWords(f, j.ID)
	}
	for a := range s.Allocs() {
		addWords(f, a.ID)
	}
	for e := range s.Evals() {
		addWords(f, e.ID)
	}
	for v := range s.Volumes() {
		addWords(f, v.ID)
		addWords(f, v.Plugin)
	}
	addWords(f, cluster.SingleNodeReader, cluster.SingleNodeWriter, cluster.MultiNodeMultiWriter)
	addWords(f, cluster.AttachFileSystem, cluster.AttachBlockDevice)
	addWords(f, cluster.CauseAttached, cluster.CauseNode, cluster.CauseUnreachable, cluster.CauseDetached)
	return f
}

// addWords adds words of one type.
func addWords[T ~string](f *oddFiller, words ...T) {
	for _, word := range words {
		f.words[reflect.TypeFor[T]()] = append(f.words[reflect.TypeFor[T]()], string(word))
		f.anyWord = append(f.anyWord, string(word))
	}
}

// word returns a word of the type, or sometimes of any type.
func (f *oddFiller) word(t reflect.Type) string {
	words := f.words[t]
	if len(words) == 0 || f.random.IntN(10) == 0 {
		words = f.anyWord
	}
	return words[f.random.IntN(len(words))]
}

func (f *oddFiller) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		odd := []int64{0, 1, -1, 2, 50, math.MinInt64, math.MaxInt64, f.random.Int64N(1 << 40)}
		v.SetInt(odd[f.random.IntN(len(odd))])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		odd := []uint64{0, 1, 2, 3, 7, math.MaxUint64, f.random.Uint64N(500)}
		v.SetUint(odd[f.random.IntN(len(odd))])
	case reflect.String:
		v.SetString(f.word(v.Type()))
	case reflect.Pointer:
		v.SetZero()
		if f.random.IntN(8) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.random.IntN(3), 3))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.SetZero()
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			odd := []time.Time{{}, noon, time.Unix(0, 0), time.Unix(1<<62, 5), noon.Add(time.Duration(f.random.Int64N(1 << 50)))}
			v.Set(reflect.ValueOf(odd[f.random.IntN(len(odd))]))
			return
		}
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic("nothing to fill a " + v.Type().String() + " with")
	}
}
