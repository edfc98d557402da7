package e2e

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// valuesVariable names a folder in which each value that occurred is an empty file, such as "ClientStatus=lost".
const valuesVariable = "NODEDRAIN_E2E_VALUES"

// collected are the enums whose values the collection compares. The API does not show states of claims.
func collected() []string {
	return []string{"NodeStatus", "Eligibility", "DesiredStatus", "ClientStatus", "EvalStatus", "EvalTrigger", "Outcome", "DrainStatus"}
}

// neverOccur are the values that no test of this package leads to, with the reason.
func neverOccur() map[string]string {
	return map[string]string{
		"DesiredStatus=evict": "schedulers of embedders preempt allocations",
		"EvalStatus=failed":   "schedulers of embedders give up evaluations",
		"MarkClass=canary":    "no job of these tests has canaries",
		"MarkClass=proceed":   "no server of these tests has the policy",
	}
}

// mayOccur are the values that some runs observe and some do not, with the reason.
func mayOccur() map[string]string {
	return map[string]string{
		"NodeStatus=initializing": "the first heartbeat follows the registration at once",
		"ClientStatus=pending":    "a task starts soon after its placement",
		"ClientStatus=failed":     "a client that is killed while it starts a task may fail the task",
		"EvalStatus=pending":      "the scheduler answers soon",
		"EvalStatus=canceled":     "only one of two evaluations that wait for the scheduler at the same time",
		"Outcome=cancelled":       "a drain may end before its cancel",
		"DrainStatus=canceled":    "a drain may end before its cancel",
		"DrainStatus=draining":    "a drain may end before it is read",
		"MarkClass=free":          "a drain may come before the new allocation is healthy",
		"MarkClass=gone":          "a drain may come before an allocation of a stopped job has ended",
	}
}

// collectValues records the values that a server has in its state. A server that does not answer adds none, and
// neither does a nil client.
func collectValues(c *api.Client) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stale := (&api.QueryOptions{AllowStale: true, Namespace: "*", PerPage: 10_000}).WithContext(ctx)
	var nodes, allocs, evals []map[string]any
	var drains struct {
		Active []struct{ Drain map[string]any }
		Recent []map[string]any
	}
	for path, answer := range map[string]any{"/v1/nodes": &nodes, "/v1/allocations": &allocs, "/v1/evaluations": &evals, "/v1/drains": &drains} {
		_, _ = c.Raw().Query(path, answer, stale)
	}
	for _, n := range nodes {
		occurred("NodeStatus", n["Status"])
		occurred("Eligibility", n["SchedulingEligibility"])
		if last, is := n["LastDrain"].(map[string]any); is {
			occurred("DrainStatus", last["Status"])
		}
	}
	for _, a := range allocs {
		occurred("DesiredStatus", a["DesiredStatus"])
		occurred("ClientStatus", a["ClientStatus"])
	}
	for _, e := range evals {
		occurred("EvalStatus", e["Status"])
		occurred("EvalTrigger", e["TriggeredBy"])
	}
	for _, active := range drains.Active {
		drains.Recent = append(drains.Recent, active.Drain)
	}
	for _, d := range drains.Recent {
		occurred("Outcome", d["Outcome"])
		marked, _ := d["Marked"].(map[string]any)
		for class := range marked {
			occurred("MarkClass", class)
		}
	}
}

// occurred records a value. The zero value of an enum, and a value that an answer lacks, are no values.
func occurred(enum string, value any) {
	if text, is := value.(string); is && text != "" {
		_ = os.WriteFile(filepath.Join(os.Getenv(valuesVariable), enum+"="+text), nil, 0o600) // the comparison detects it
	}
}

// beginCollection makes the folder of the values. end compares them if all tests ran and passed, and returns an exit
// code: each value occurs, or the tables have a reason.
func beginCollection() (end func(passed bool) int) {
	dir, err := os.MkdirTemp("", "values")
	if err == nil {
		err = os.Setenv(valuesVariable, dir)
	}
	return func(passed bool) int {
		defer func() { _ = os.RemoveAll(dir) }()
		if !passed || err == nil && (!wholeRun() || noMachine() != "") {
			return 0
		}
		problems, failed := compareValues(dir)
		for _, p := range problems {
			fmt.Fprintln(os.Stderr, p)
		}
		if err != nil || failed != nil {
			fmt.Fprintln(os.Stderr, "the values of enums that occurred:", err, failed)
			return 1
		}
		return min(len(problems), 1)
	}
}

// wholeRun reports whether no flag selects tests.
func wholeRun() bool {
	for name, all := range map[string]string{"test.run": "", "test.skip": "", "test.list": "", "test.short": "false"} {
		if f := flag.Lookup(name); f == nil || f.Value.String() != all {
			return false
		}
	}
	return true
}

// compareValues returns a line for each value that is not as the tables have it.
func compareValues(dir string) (problems []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, f := range files {
		found[f.Name()] = true
	}
	all, err := declaredValues("../../cluster")
	if err != nil {
		return nil, err
	}
	for class := cluster.MarkNone + 1; class < cluster.MarkClassCount; class++ {
		all = append(all, "MarkClass="+class.String())
	}
	listed := 0
	for _, value := range all {
		never, may := neverOccur()[value], mayOccur()[value]
		if never != "" || may != "" {
			listed++
		}
		switch {
		case never != "" && found[value]:
			problems = append(problems, value+" occurred, and neverOccur has it: "+never)
		case never == "" && may == "" && !found[value]:
			problems = append(problems, value+" did not occur in any test")
		}
	}
	if want := len(neverOccur()) + len(mayOccur()); listed != want {
		problems = append(problems, fmt.Sprintf("neverOccur and mayOccur have %d values, and %d of them exist once", want, listed))
	}
	return problems, nil
}

// declaredValues returns the constants of the collected enums in a package, such as "ClientStatus=lost", but for the
// empty ones.
func declaredValues(dir string) (values []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			enum, named := spec.Type.(*ast.Ident)
			literal, text := spec.Values[0].(*ast.BasicLit)
			if !named || !text || !slices.Contains(collected(), enum.Name) {
				return true
			}
			if value, err := strconv.Unquote(literal.Value); err == nil && value != "" {
				values = append(values, enum.Name+"="+value)
			}
			return true
		})
	}
	return values, nil
}
