package shims_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// named returns a message identified by a name.
func named(name string) shims.Message {
	return &shims.NodeUpdateStatus{Node: cluster.NodeID(name), Status: cluster.NodeReady}
}

// answers collects the outcomes of writes by name, and fails the test if a write is answered
// twice.
type answers struct {
	t  testing.TB
	mu sync.Mutex
	by map[string]shims.Answer
	// order holds the names in the order in which they were answered.
	order []string
}

func newAnswers(t testing.TB) *answers { return &answers{t: t, by: make(map[string]shims.Answer)} }

func (a *answers) of(name string) func(shims.Answer) {
	return func(answer shims.Answer) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if _, twice := a.by[name]; twice {
			a.t.Errorf("%s was answered twice", name)
		}
		a.by[name] = answer
		a.order = append(a.order, name)
	}
}

func (a *answers) all() map[string]shims.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.by)
}

func (a *answers) outcomes() map[string]raftwrite.Outcome {
	outcomes := make(map[string]raftwrite.Outcome)
	for name, answer := range a.all() {
		outcomes[name] = answer.Outcome
	}
	return outcomes
}

func (a *answers) get(name string) shims.Answer {
	answer, ok := a.all()[name]
	must.True(a.t, ok, must.Sprintf("%s was not answered", name))
	return answer
}
