package node

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// parse parses flags.
func parse(f *drainFlags, args []string) error {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	f.options().Set(set)
	return set.Parse(args)
}

func TestNodeDrainFlags_limit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"": "1h0m0s", "-deadline 90s": "1m30s", "-no-deadline": "0s", "-force": "-1s"} {
		var f drainFlags
		err := parse(&f, strings.Fields(line))
		must.NoError(t, err)
		limit, err := f.Limit()
		must.NoError(t, err)
		must.Eq(t, want, limit.String())
	}
}

// The drain keeps metadata unchanged, including a key without a value.
func TestMetaFlag(t *testing.T) {
	t.Parallel()
	var f drainFlags
	err := parse(&f, []string{"-meta", "a=1", "-meta", "b", "-meta", "c=x=y", "-m", "why"})
	must.NoError(t, err)
	must.Eq(t, map[string]string{"a": "1", "b": "", "c": "x=y", "message": "why"}, f.meta.with(nil, "message", f.message))
	before := map[string]string{"a": "0", "message": "first"}
	must.Eq(t, map[string]string{"a": "1", "b": "", "c": "x=y", "message": "first", "cancel_message": "why"},
		f.meta.with(before, "cancel_message", f.message))
	must.Eq(t, map[string]string{"a": "0", "message": "first"}, before)
	must.NotNil(t, new(drainFlags).meta.with(nil, "message", ""))
}

// Bug: an unset variable of a script removed the protection against a repeated request, without a word.
func TestNodeDrainFlags_emptyKeys(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-idempotency-token", ""}, {"-idempotency-token="}, {"-idempotency-token", " "}, {"-meta", ""}, {"-meta", "=x"}} {
		must.ErrorContains(t, parse(new(drainFlags), args), "the key is empty", must.Sprint(args))
	}
	var f drainFlags
	must.NoError(t, parse(&f, []string{"-idempotency-token", "monday"}))
	must.EqOp(t, "monday", f.key)
}

// A confirmation names the largest jobs first, and no job without end.
func TestMovingText(t *testing.T) {
	t.Parallel()
	node := &wire.Node{ID: "n1", Name: "first"}
	var allocs []*wire.Allocation
	add := func(n int, namespace, job, jobType, status string) {
		for range n {
			allocs = append(allocs, &wire.Allocation{Namespace: namespace, JobID: job, ClientStatus: status, Job: &wire.Job{Type: &jobType}})
		}
	}
	must.Eq(t, `Node "first" (n1) has no allocations to move`, movingText(node, nil, false))
	add(2, "default", "web", "service", "running")
	add(1, "ops", "web", "service", "pending")
	add(1, "default", "logs", "system", "running")
	add(3, "default", "old", "service", "complete")
	must.Eq(t, `Node "first" (n1) has 4 allocations to move: 2 of web, 1 of logs, 1 of ops/web`, movingText(node, allocs, false))
	must.Eq(t, `Node "first" (n1) has 3 allocations to move: 2 of web, 1 of ops/web`, movingText(node, allocs, true))
	logs, group := allocs[3], "logs"
	logs.TaskGroup, logs.Job.TaskGroups = group, []*wire.TaskGroup{{Name: &group, Volumes: map[string]*wire.VolumeRequest{"data": {Source: "data"}}}}
	must.StrHasSuffix(t, `1 of ops/web; storage plugins that serve system jobs stay`, movingText(node, allocs, true))
	must.StrHasSuffix(t, `1 of ops/web`, movingText(node, allocs, false))
	for i := range 10 {
		add(1, "default", fmt.Sprintf("job-%d", i), "batch", "running")
	}
	must.StrHasSuffix(t, "1 of job-6, and others of 5 jobs", movingText(node, allocs, false))
}
