package lint_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// The project's own rules, and the tests that hold it to them.

const module = "github.com/seed-f9cf0b39/nodedrain"

// loopRule says what decides in this project, and what it may use.
func loopRule() lint.LoopRule {
	const live = "a shell of goroutines around the steps, in which time passes and chance falls"
	return lint.LoopRule{
		Roots: []lint.Root{
			// Every step machine, whoever adds it.
			{Receiver: "*", Name: "Step", Takes: []string{"Time", "Look"}},

			{Package: module + "/drainer", Receiver: "Term", Name: "Step"},
			{Package: module + "/drainer", Receiver: "Term", Name: "Explain"},
			{Package: module + "/drainer", Receiver: "Term", Name: "Status"},
			{Package: module + "/drainer/rules", Name: "Explain"},
			{Package: module + "/drainer/rules", Receiver: "Explainer", Name: "Report"},
			{Package: module + "/drainer/rules", Receiver: "Snapshot", Name: "PlanGroup"},
			{Package: module + "/drainer/rules", Receiver: "Snapshot", Name: "PlanNode"},
			{Package: module + "/drainer/rules", Name: "Recheck"},
			{Package: module + "/drainer/rules", Name: "RecheckCompletions"},

			{Package: module + "/scheduler", Receiver: "Scheduler", Name: "Step"},
			{Package: module + "/scheduler", Name: "Schedule"},
			{Package: module + "/scheduler", Name: "Check"},
			{Package: module + "/scheduler", Name: "JobEval"},
			{Package: module + "/scheduler", Name: "NodeEvals"},
			{Package: module + "/scheduler", Name: "ReportEvals"},

			{Package: module + "/shims", Receiver: "FSM", Name: "Apply"},
			{Package: module + "/shims", Receiver: "FSM", Name: "ApplyEntry"},
			{Package: module + "/statestore", Receiver: "*", Name: "FromObject"}, // called by go-memdb
			{Package: module + "/statestore", Receiver: "*", Name: "FromArgs"},
		},
		Boundaries: map[string]string{
			"github.com/hashicorp/go-hclog.Logger":                      "what is logged decides nothing",
			"log/slog.Logger":                                           "what is logged decides nothing",
			module + "/drainer.NodeDrainerConfig.NewEvalID":             "ids are injected: only the default draws them at random",
			module + "/scheduler.IDs.Alloc":                             "ids are injected: only RandomIDs draws them at random",
			module + "/scheduler.IDs.Eval":                              "ids are injected: only RandomIDs draws them at random",
			"(" + module + "/sim/world.proposals).Propose":              "a world decides what becomes of a write: that may be the end of a term",
			"(*" + module + "/sim/world.fleet).Report":                  "a world decides what becomes of a report: that may be the end of a term",
			"(*" + module + "/sim/live.clients).Report":                 live,
			"(*" + module + "/sim/live.clients).behave":                 live,
			"(*" + module + "/sim/live.contract).observe":               live,
			"(*" + module + "/sim/live.quorum).observe":                 live,
			"(*" + module + "/sim/live.view).frozen":                    live,
			"(" + module + "/sim/live.proposals).Propose":               live,
			"(" + module + "/sim/live.reader).Snapshot":                 live,
			"(*" + module + "/demo.clients).Report":                     "reports leave in a goroutine of their own: handing them over decides nothing",
			"(*" + module + "/agent.Agent).applied":                     "whom a leader waits for decides nothing about what is applied",
			"(*" + module + "/agent.Dev).Report":                        "reports leave in a goroutine of their own: handing them over decides nothing",
			"(*" + module + "/simclient/remote.runner).Report":          "reports leave in goroutines of their own: handing them over decides nothing",
			"(*" + module + "/shims.Proposer).enqueue → time.AfterFunc": "a write's time limit is kept by the shell: it answers, and decides nothing",
			module + "/shims.Options.OnAnswer":                          "who counts answers decides nothing",
			module + "/witness.Options.OnFinding":                       "who counts findings decides nothing",
		},
		Outside: []string{
			"cmp", "container/heap", "crypto/sha256", "errors", "fmt", "hash", "hash/fnv", "io", "maps", "math/rand/v2", "slices", "strconv", "strings", "sync", "sync/atomic", "time",
			"github.com/hashicorp/go-memdb", "github.com/hashicorp/go-msgpack/v2/codec", "golang.org/x/time/rate",
		},
	}
}

// snapshotRule is for what turns a state into a snapshot and back. It reads and
// writes a stream, and for the rest is like everything that replicas do: the same
// on all of them.
func snapshotRule() lint.LoopRule {
	return lint.LoopRule{
		Roots: []lint.Root{
			{Package: module + "/statestore", Receiver: "Snapshot", Name: "Persist"},
			{Package: module + "/statestore", Name: "Restore"},
		},
		Boundaries: map[string]string{
			"(*" + module + "/agent.tracked).Read": "where the stream comes from is not the state's business",
		},
		Outside: []string{
			"bufio", "bytes", "cmp", "encoding/binary", "errors", "fmt", "hash", "hash/crc64", "io", "maps", "slices", "strings", "sync", "sync/atomic",
			"github.com/hashicorp/go-memdb", "github.com/hashicorp/go-msgpack/v2/codec",
		},
	}
}

// judgeRule is for the judges of simulated runs: they find the same in equal runs,
// in the same order.
func judgeRule() lint.LoopRule {
	judge := module + "/sim/invariant"
	rule := lint.LoopRule{
		Roots: []lint.Root{{Package: judge, Name: "Digest"}, {Package: judge, Name: "Facts"}, {Package: judge, Name: "MarkFacts"}},
		Outside: []string{
			"bufio", "bytes", "cmp", "encoding/binary", "fmt", "io", "maps", "math/bits", "reflect", "slices", "strconv", "strings", "time",
			"github.com/hashicorp/go-memdb",
		},
	}
	for _, method := range []string{
		"Applied", "Replica", "Restored", "Began", "Ended", "ClockSet", "Proposed", "NotTaken", "Answered", "Stepped", "Quiet", "Calm", "End", "SameFacts",
	} {
		rule.Roots = append(rule.Roots, lint.Root{Package: judge, Receiver: "Judge", Name: method})
	}
	return rule
}

// importRules say which package must not import which, and why.
func importRules() []lint.ImportRule {
	const (
		embedded  = "other people embed the drainer with a store and a log of their own"
		noNetwork = "what decides does not speak to anybody"
		noChance  = "decisions are the same every time"
		dumbTwin  = "a witness that shares code with what it watches shares its mistakes"
		uncounted = "what is counted does not know who counts"
		below     = "imports point downwards: cluster ← drainer ← statestore ← shims ← server"
	)
	return []lint.ImportRule{
		{Package: module + "/cluster", OnlyStandard: "the nouns stand for themselves", Directly: map[string]string{
			"os": "the nouns do no I/O", "net/http": "the nouns do no I/O", "sync": "the nouns share nothing", "context": "nothing here waits",
		}},
		{Package: module + "/cluster/alarm", OnlyStandard: "embedders get this module"},
		{Package: module + "/cluster/raftwrite", OnlyStandard: "embedders get this module"},
		{
			Package: module + "/drainer",
			Never: map[string]string{
				module + "/statestore":                     embedded,
				module + "/shims":                          embedded,
				module + "/scheduler":                      embedded,
				module + "/witness":                        dumbTwin,
				module + "/telemetry":                      uncounted,
				"github.com/hashicorp/go-memdb":            embedded,
				"github.com/hashicorp/raft":                embedded,
				"github.com/hashicorp/go-msgpack/v2/codec": embedded,
				"net/http":                                 noNetwork,
			},
			Directly: map[string]string{
				"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance, "net": noNetwork, "os": noNetwork,
			},
		},
		{Package: module + "/drainer/rules", Never: map[string]string{module + "/drainer": "an FSM judges entries without the goroutine"}},
		{Package: module + "/drainer/lifecycle", Never: map[string]string{module + "/drainer": "an FSM applies entries without the goroutine"}},
		{
			Package: module + "/scheduler",
			Never: map[string]string{
				module + "/drainer":             "a scheduler knows marks, not who makes them",
				module + "/statestore":          "a scheduler reads through the small interface it declares",
				module + "/shims":               below,
				"github.com/hashicorp/go-memdb": "a scheduler reads through the small interface it declares",
				"github.com/hashicorp/raft":     below,
				"net/http":                      noNetwork,
			},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance},
		},
		{
			Package: module + "/simclient",
			Never: map[string]string{
				module + "/drainer":    "a client knows its own node, not drains",
				module + "/statestore": "a client reads through the small interface it declares",
				module + "/scheduler":  "a client does as it is told, whoever schedules",
				module + "/shims":      below,
			},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": "a client's chance comes from a seed: math/rand/v2"},
		},
		{
			Package: module + "/statestore",
			Never: map[string]string{
				module + "/shims":           below,
				module + "/scheduler":       "the store keeps what is decided, whoever decides",
				"github.com/hashicorp/raft": below,
			},
			Directly: map[string]string{
				"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance, "net": noNetwork, "net/http": noNetwork,
			},
		},
		{
			Package: module + "/witness",
			Never:   map[string]string{module + "/drainer": dumbTwin, module + "/scheduler": dumbTwin, module + "/statestore": dumbTwin},
		},
		{
			Package:  module + "/shims",
			Never:    map[string]string{module + "/server": below, module + "/witness": dumbTwin, module + "/simclient": below, module + "/telemetry": uncounted},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance, "net/http": noNetwork},
		},
		{Package: module + "/server", Never: map[string]string{
			module + "/demo":                "the server is what people copy: it stands without a show",
			module + "/drainer/drainertest": "no harness in what is run",
			module + "/sim/world":           "no simulation in what is run",
			module + "/witness":             dumbTwin,
		}},
		{
			Package: module + "/httpapi",
			Never: map[string]string{
				module + "/server":              "handlers stand on the interfaces they declare, whoever serves",
				module + "/agent":               "handlers stand on the interfaces they declare, whoever serves",
				module + "/drainer":             "handlers show what package rules decides, without the goroutine",
				module + "/statestore":          "handlers read through the small interface they declare",
				module + "/shims":               "handlers write through the small interface they declare",
				module + "/scheduler":           "handlers write through the small interface they declare",
				"github.com/hashicorp/go-memdb": "handlers read through the small interface they declare",
				"github.com/hashicorp/raft":     "handlers write through the small interface they declare",
			},
			Directly: map[string]string{"math/rand": "what is waited at random is math/rand/v2's to say"},
		},
		{Package: module + "/httpapi/wire", Never: map[string]string{
			module + "/httpapi": "what travels is the same for servers and their clients",
			"net/http":          "shapes do not speak to anybody",
		}},
		{Package: module + "/agent", Never: map[string]string{
			module + "/demo":                "an agent is for real: it stands without a show",
			module + "/drainer/drainertest": "no harness in what is run",
			module + "/sim/world":           "no simulation in what is run, but for clients that are asked for",
		}},
		{
			Package: module + "/agent/heartbeat",
			Never: map[string]string{
				module + "/shims":           "what keeps the time says what to write, and writes nothing",
				module + "/statestore":      "what keeps the time is told who was heard",
				"github.com/hashicorp/raft": "what keeps the time says what to write, and writes nothing",
				"net/http":                  noNetwork,
			},
			Directly: map[string]string{"crypto/rand": noChance, "net": noNetwork, "os": noNetwork},
		},
		{Package: module + "/simclient/remote", Never: map[string]string{
			module + "/server":     "clients know servers by their API alone",
			module + "/statestore": "clients know servers by their API alone",
			module + "/shims":      "clients know servers by their API alone",
			module + "/scheduler":  "a client does as it is told, whoever schedules",
		}},
		{Package: module + "/sim/world", Never: map[string]string{
			module + "/server":  "a world steps what a server runs",
			module + "/witness": "what is judged does not know its judges",
		}},
	}
}

// exceptions are the variables and functions that are as they are for a reason.
func exceptions() map[string]string {
	return map[string]string{
		"(*" + module + "/shims.FSM).Apply": "raft.FSM demands it",
		module + "/shims.handle":            "the codec keeps what it learns of types in it, and nobody else writes to it",
	}
}

// project loads the modules of the workspace once for all tests here.
var project = sync.OnceValues(func() (*lint.Module, error) { return lint.Load(root(), "work") })

// root is the folder of the workspace.
func root() string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return dir
}

func TestProject_loopRule(t *testing.T) {
	t.Parallel()
	m, err := project()
	must.NoError(t, err)
	report(t, lint.CheckLoopRules(m, loopRule(), snapshotRule(), judgeRule()))
}

func TestProject_imports(t *testing.T) {
	t.Parallel()
	found, err := lint.CheckImports(root(), importRules())
	must.NoError(t, err)
	report(t, found)
}

func TestProject_files(t *testing.T) {
	t.Parallel()
	tree, err := lint.ReadTree(root())
	must.NoError(t, err)
	report(t, lint.CheckFiles(tree))
}

func TestProject_declarations(t *testing.T) {
	t.Parallel()
	m, err := project()
	must.NoError(t, err)
	report(t, lint.CheckDeclarations(m, exceptions()))
}

func report(t *testing.T, found []lint.Finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}
