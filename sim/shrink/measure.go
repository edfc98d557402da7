package shrink

import (
	"bytes"
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// measure is the size of a scenario. Its numbers are compared in order. The first ones matter most
// to a reader.
type measure [10]int

// measured measures a scenario and its text.
func measured(s *scenario.Scenario, text []byte) measure {
	var weight, parts, disorder int
	counts := numbers(s)
	var late time.Duration
	for i := range s.Events {
		e := &s.Events[i]
		late += e.At
		if i > 0 && e.At < s.Events[i-1].At {
			disorder++
		}
		if f, is := e.Op.(*scenario.Fault); is {
			weight += faultWeight(f)
		}
		if nodes, at := nodesOf(e.Op); nodes != nil && at == nil {
			parts += len(*nodes)
		}
	}
	for i := range s.Jobs {
		parts++
		for _, g := range s.Jobs[i].Groups {
			parts++
			counts += g.Count
		}
	}
	size := SizeOf(s)
	parts += size.Nodes + len(s.Clients)
	for i := range s.Allocs {
		parts += max(len(s.Allocs[i].On), s.Allocs[i].Indexes.Count)
	}
	return measure{
		len(s.Events), weight, parts, counts, len(bytes.Fields(text)), digits(text), disorder,
		int(late / time.Millisecond), len(text), int(min(s.Seed, math.MaxInt32)),
	}
}

// digits counts the digits other than 0. A round number has one.
func digits(text []byte) int {
	n := 0
	for _, c := range text {
		if c >= '1' && c <= '9' {
			n++
		}
	}
	return n
}
