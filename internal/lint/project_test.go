package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// The rules of this project and their tests.

const module = "github.com/seed-f9cf0b39/nodedrain"

// loopRule names the code that decides, and the packages that it may use.
func loopRule() lint.LoopRule {
	rule := lint.LoopRule{
		Roots: []lint.Root{
			// Every step machine.
			{Receiver: "*", Name: "Step", Takes: []string{"Time", "Reading"}},

			{Package: module + "/drainer", Receiver: "Term", Name: "Step"},
			{Package: module + "/drainer", Receiver: "Term", Name: "Explain"},
			{Package: module + "/drainer", Receiver: "Term", Name: "Status"},
			{Package: module + "/drainer/rules", Name: "Explain"},
			{Package: module + "/drainer/rules", Receiver: "Explainer", Name: "Report"},
			{Package: module + "/drainer/rules", Receiver: "Planner", Name: "PlanGroup"},
			{Package: module + "/drainer/rules", Receiver: "Planner", Name: "PlanNode"},
			{Package: module + "/drainer/rules", Name: "Recheck"},
			{Package: module + "/drainer/rules", Name: "RecheckCompletions"},

			{Package: module + "/client/volume", Receiver: "Volumes", Name: "Step"},
			{Package: module + "/client/volume", Receiver: "Volumes", Name: "Status"},
			{Package: module + "/client/volume", Receiver: "Start", Name: "Probed"},

			{Package: module + "/client/guard", Receiver: "Watch", Name: "Step"},

			{Package: module + "/client/presence", Receiver: "Presence", Name: "Answer"},
			{Package: module + "/client/presence", Receiver: "Outage", Name: "Failed"},
			{Package: module + "/client/presence", Receiver: "Outage", Name: "Succeeded"},

			{Package: module + "/cluster/volumes", Name: "Due"},
			{Package: module + "/cluster/volumes", Name: "Expired"},
			{Package: module + "/cluster/volumes", Receiver: "Caller", Name: "Ready"},
			{Package: module + "/cluster/volumes", Receiver: "Caller", Name: "Failed"},

			{Package: module + "/scheduler", Receiver: "Scheduler", Name: "Step"},
			{Package: module + "/scheduler", Name: "Schedule"},
			{Package: module + "/scheduler/collect", Receiver: "Collector", Name: "Step"},
			{Package: module + "/scheduler/collect", Name: "Apply"},
			{Package: module + "/scheduler", Name: "Check"},
			{Package: module + "/scheduler", Name: "JobEval"},
			{Package: module + "/scheduler", Name: "NodeEvals"},
			{Package: module + "/scheduler", Name: "ReportEvals"},

			{Package: module + "/plan", Name: "Play"},
			{Package: module + "/plan", Receiver: "Outlook", Name: "Play"},

			{Package: module + "/shims", Receiver: "FSM", Name: "Apply"},
			{Package: module + "/shims", Receiver: "FSM", Name: "ApplyEntry"},
			{Package: module + "/statestore", Receiver: "*", Name: "FromObject"}, // called by go-memdb
			{Package: module + "/statestore", Receiver: "*", Name: "FromArgs"},
		},
		Boundaries: map[string]string{
			"github.com/hashicorp/go-hclog.Logger":                                 "a log line decides nothing",
			"log/slog.Logger":                                                      "a log line decides nothing",
			module + "/drainer.isNil":                                              "a nil pointer in a configuration decides nothing",
			"(" + module + "/drainer.NodeDrainerConfig).withDefaults":              "a play sets what is random, and the other defaults are constant",
			"(" + module + "/scheduler.Config).withDefaults":                       "a play sets what is random, and the other defaults are constant",
			module + "/shims.NewFSM → github.com/hashicorp/go-hclog.NewNullLogger": "a log line decides nothing",
			module + "/drainer.NodeDrainerConfig.OnStep":                           "a play has none, and a count of steps decides nothing",
			module + "/client.Options.NewTaskID":                                   "ids are injected: only the shell's are random",
			module + "/drainer.NodeDrainerConfig.NewEvalID":                        "ids are injected: only the default is random",
			module + "/scheduler.IDs.Alloc":                                        "ids are injected: only RandomIDs is random",
			module + "/scheduler.IDs.Eval":                                         "ids are injected: only RandomIDs is random",
			"(" + module + "/sim/world.proposals).Propose":                         "a world decides the outcome of a write, which may end a term",
			"(*" + module + "/sim/world.fleet).Report":                             "a world decides the outcome of a report, which may end a term",
			"(*" + module + "/cmd/nodedrain/demo.clients).Report":                  "a goroutine sends the reports: to hand them over decides nothing",
			"(*" + module + "/server/agent.Agent).applied":                         "the entry that a leader waits for does not affect the FSM",
			"(*" + module + "/shims.Proposer).enqueue → time.AfterFunc":            "the timer of a write answers it and decides nothing",
			"(*" + module + "/examples/scheduler.writer).propose → time.AfterFunc": "the timer of a write answers it and decides nothing",
			module + "/client.Shell":                                               "the shell acts for the core, which only begins effects",
			module + "/client/volume.Shell":                                        "the shell acts for the machine, which only begins effects",
			module + "/shims.Options.OnAnswer":                                     "a count of answers decides nothing",
			module + "/witness.Options.OnFinding":                                  "a count of findings decides nothing",
		},
		Outside: []string{
			"bytes", "cmp", "container/heap", "context", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/fnv", "io", "maps", "math", "math/big", "math/rand/v2", "path", "regexp", "regexp/syntax", "slices", "strconv", "strings", "sync", "sync/atomic", "time", "unicode/utf8",
			"github.com/hashicorp/go-memdb", "github.com/hashicorp/go-msgpack/v2/codec", "golang.org/x/time/rate",
		},
	}
	return rule
}

// snapshotRule is for the code that writes a state to a snapshot and restores it. It uses streams,
// and its result is the same on all replicas.
func snapshotRule() lint.LoopRule {
	return lint.LoopRule{
		Roots: []lint.Root{
			{Package: module + "/statestore", Name: "Persist"},
			{Package: module + "/statestore", Name: "Restore"},
		},
		Boundaries: map[string]string{
			"(*" + module + "/server/agent.trackedConn).Read":     "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/client.answer).Read":        "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/client.quietConn).Read":     "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/client.quietConn).Write":    "the destination of the stream does not affect the state",
			"(*" + module + "/plugin/host.firstLine).Read":        "the origin of the stream does not affect the state",
			"(" + module + "/client/nodeapi.outputStream).Write":  "the destination of the stream does not affect the state",
			"(*" + module + "/client/checks/probe.limited).Write": "the destination of the stream does not affect the state",
			"(*" + module + "/client/nodeapi.dataWriter).Write":   "the destination of the stream does not affect the state",
			"(*" + module + "/httpapi/session.bufferedConn).Read": "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/session.stream).Write":      "the destination of the stream does not affect the state",
			"(*" + module + "/client/datacopy.frameWriter).Write": "the destination of the stream does not affect the state",
			"(*" + module + "/client/datacopy.frameReader).Read":  "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/session.guard).Read":        "the origin of the stream does not affect the state",
			"(*" + module + "/httpapi/session.stream).Read":       "the origin of the stream does not affect the state",
		},
		Outside: []string{
			"bufio", "bytes", "cmp", "encoding/binary", "errors", "fmt", "hash", "hash/crc64", "io", "maps", "slices", "strings", "sync", "sync/atomic", "time",
			"github.com/hashicorp/go-memdb", "github.com/hashicorp/go-msgpack/v2/codec",
		},
	}
}

// judgeRule is for the judges of simulated runs: in equal runs they have the same findings in the
// same order.
func judgeRule() lint.LoopRule {
	judge := module + "/sim/invariant"
	rule := lint.LoopRule{
		Boundaries: map[string]string{
			"(" + module + "/client/nodeapi.outputStream).Write":  "the destination of a stream decides nothing",
			"(*" + module + "/client/nodeapi.dataWriter).Write":   "the destination of a stream decides nothing",
			"(*" + module + "/client/checks/probe.limited).Write": "the destination of a stream decides nothing",
			"(*" + module + "/httpapi/client.quietConn).Write":    "the destination of a dump does not affect the finding",
			"(*" + module + "/httpapi/session.stream).Write":      "the destination of a dump does not affect the finding",
			"(*" + module + "/client/datacopy.frameWriter).Write": "the destination of a dump does not affect the finding",
			"(*" + module + "/httpapi.redactedState).job":         "the judge's witness reads the tables of the judge",
			module + "/witness.Options.OnFinding":                 "the judge's own function records the finding",
		},
		Outside: []string{
			"bufio", "bytes", "cmp", "encoding/binary", "fmt", "hash", "hash/fnv", "io", "maps", "reflect", "slices", "strconv", "strings", "time",
			"github.com/hashicorp/go-memdb",
		},
	}
	for _, method := range []string{
		"Applied", "Replica", "Restored", "Began", "Ended", "ClockSet", "Proposed", "NotTaken", "Answered", "Stepped", "Quiet", "Calm", "End",
	} {
		rule.Roots = append(rule.Roots, lint.Root{Package: judge, Receiver: "Judge", Name: method})
	}
	return rule
}

// floors are the folders of the repository, the lowest first. Products are named by their folder in
// the root. The code in internal/ that products import has floors of its own.
func floors() lint.Floors {
	return lint.Floors{
		{"internal/private", "internal/measure"},
		{"cluster"},
		{"internal/attributes", "plugin"},
		{"drainer"},
		{"httpapi"},
		{"client", "scheduler", "statestore"},
		{"shims"},
		{"plan", "witness"},
		{"server"},
		{"sim"},
		{"cmd", "examples"},
		{"internal"},
	}
}

// maxFolders is the largest number of folders in the root.
const maxFolders = 16

// importRules are the bans of imports that do not follow from the floors, with reasons.
func importRules() []lint.ImportRule {
	const (
		embedded  = "embedders of the drainer have their own store and log"
		noNetwork = "code that decides uses no network"
		noChance  = "decisions are not random"
		dumbTwin  = "a witness that shares code with the drainer shares its bugs"
	)
	rules := []lint.ImportRule{
		{Package: module + "/cluster", OnlyStandard: "the nouns need only the standard library", Directly: map[string]string{
			"os": "the nouns do no I/O", "net/http": "the nouns do no I/O", "sync": "the nouns have no locks", "context": "the nouns do not wait",
		}},
		{
			Package: module + "/drainer",
			Never: map[string]string{
				"github.com/hashicorp/go-memdb":            embedded,
				"github.com/hashicorp/raft":                embedded,
				"github.com/hashicorp/go-msgpack/v2/codec": embedded,
				"net/http": noNetwork,
			},
			Directly: map[string]string{
				"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance, "net": noNetwork, "os": noNetwork,
			},
		},
		{Package: module + "/drainer/rules", Never: map[string]string{module + "/drainer": "an FSM checks entries without the drainer's goroutine"}},
		{Package: module + "/drainer/lifecycle", Never: map[string]string{module + "/drainer": "an FSM applies entries without the drainer's goroutine"}},
		{
			Package: module + "/scheduler",
			Never: map[string]string{
				module + "/drainer":             "a scheduler reads marks and needs no drainer",
				"github.com/hashicorp/go-memdb": "a scheduler reads through the small interface it declares",
				"github.com/hashicorp/raft":     "a scheduler returns plans and writes nothing",
				"net/http":                      noNetwork,
			},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance},
		},
		{
			Package:  module + "/scheduler/collect",
			Never:    map[string]string{module + "/drainer": "the rules read through the small interface they declare"},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance},
		},
		{
			Package:  module + "/client/simclient",
			Never:    map[string]string{module + "/drainer": "a client reads its own node and no drains"},
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": "a client's random numbers have a seed: math/rand/v2"},
		},
		{Package: module + "/client/node", Never: map[string]string{module + "/client/simclient": "a real client contains no simulated one"}},
		{
			Package: module + "/statestore",
			Never:   map[string]string{"github.com/hashicorp/raft": "the state does not depend on the log"},
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
			Directly: map[string]string{"crypto/rand": noChance, "math/rand": noChance, "math/rand/v2": noChance, "net/http": noNetwork},
		},
		{Package: module + "/server", Never: map[string]string{
			module + "/drainer/drainertest": "a server contains no test harness",
			module + "/witness":             dumbTwin,
		}},
		{
			Package: module + "/httpapi",
			Never: map[string]string{
				module + "/drainer":             "handlers use package rules, not the drainer's goroutine",
				"github.com/hashicorp/go-memdb": "handlers read through the small interface that they declare",
				"github.com/hashicorp/raft":     "handlers write through the small interface they declare",
			},
			Directly: map[string]string{"math/rand": "random waits use math/rand/v2"},
		},
		{Package: module + "/httpapi/wire", Never: map[string]string{
			module + "/httpapi": "servers and their clients share the shapes",
			"net/http":          "shapes use no network",
		}},
		{Package: module + "/httpapi/session", Never: map[string]string{
			module + "/httpapi": "a session carries requests and does not read them",
			module + "/cluster": "a session carries requests and does not read them",
		}},
		{Package: module + "/server/agent", Never: map[string]string{module + "/drainer/drainertest": "a server contains no test harness"}},
		{
			Package: module + "/server/agent/heartbeat",
			Never: map[string]string{
				module + "/shims":           "the heartbeat timers return writes and do not write",
				module + "/statestore":      "the heartbeat timers get the heartbeats from the agent",
				"github.com/hashicorp/raft": "the heartbeat timers return writes and do not write",
				"net/http":                  noNetwork,
			},
			Directly: map[string]string{"crypto/rand": noChance, "net": noNetwork, "os": noNetwork},
		},
		{Package: module + "/client/nodeapi", Never: map[string]string{
			module + "/httpapi":         "the client of a node answers requests and serves no API",
			module + "/httpapi/session": "how a request arrives does not matter to its answer",
		}},
		{Package: module + "/examples/scheduler", Never: map[string]string{
			module + "/statestore":      "the example has rows of its own",
			module + "/shims":           "the example has a log of its own",
			module + "/server":          "the example is a server",
			"github.com/hashicorp/raft": "an embedder has a log of its own",
		}},
		{Package: module + "/sim/internal/placement", Directly: map[string]string{module + "/scheduler": dumbTwin}},
		{Package: module + "/sim/world", Never: map[string]string{
			module + "/server":  "a world steps the parts of a server",
			module + "/witness": "a world and its judges are independent",
		}},
	}
	for _, name := range []string{"alarm", "raftwrite", "quantity", "semver", "feasible", "variables", "volumes"} {
		rules = append(rules, lint.ImportRule{Package: module + "/cluster/" + name, OnlyStandard: "embedders get this module"})
	}
	const noPlugins = "only a client, the plugins and the commands that serve them speak the protocol of plugins"
	for _, name := range []string{"drainer", "scheduler", "statestore", "shims", "witness", "httpapi", "httpapi/client", "server/agent", "client", "client/nodeapi", "sim/swarm"} {
		rules = append(rules, lint.ImportRule{Package: module + "/" + name, Never: map[string]string{
			"google.golang.org/grpc": noPlugins, "github.com/hashicorp/go-plugin": noPlugins, "github.com/hashicorp/hcl/v2": noPlugins,
		}})
	}
	return rules
}

// maxMethods is the largest number of methods that a type may have. A larger type has more than
// one task.
const maxMethods = 30

// The largest number of files of a package, without tests and generated files. A reader of a larger
// package does not find the file of a noun by its name.
const (
	maxFiles     = 30
	maxMainFiles = 15
)

// variables are package variables that are no state, with the reason.
func variables() map[string]string {
	const table = "a table that nothing writes to"
	return map[string]string{
		"internal/bench.packages":        table,
		"cmd/nodedrain/demo/openb.kinds": table,
		"drainer/drainertest.allocIDs":   table,
		"drainer/drainertest.evalIDs":    table,
		"drainer/drainertest.evalState":  table,
		"drainer/drainertest.groups":     table,
		"drainer/drainertest.jobKeys":    table,
		"drainer/drainertest.jobTypes":   table,
		"drainer/drainertest.nodeIDs":    table,
		"drainer/drainertest.statuses":   table,
		"drainer/internal/fixture.Group": "a constant of a struct type",
		"internal/lint.forbidden":        table,
		"internal/lint.shown":            table,
		"internal/lint.orderFree":        table,
		"shims.handle":                   "the codec caches the layouts of types in it, behind its own lock",
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
	files, err := lint.ReadFiles(os.DirFS(root()))
	must.NoError(t, err)
	report(t, lint.CheckMethods(files, module, maxMethods))
	report(t, lint.CheckCounts(files, maxFiles, maxMainFiles))
	report(t, lint.CheckVariables(files, variables()))
	report(t, lint.CheckFloors(files, module, floors()))
}

// The root has few folders, and ARCHITECTURE.md has one line for each: its users and their reason.
func TestProject_folders(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root(), "ARCHITECTURE.md"))
	must.NoError(t, err)
	entries, err := os.ReadDir(root())
	must.NoError(t, err)
	folders := 0
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders++
			must.StrContains(t, string(page), "\n| `"+e.Name()+"/` | ", must.Sprint("ARCHITECTURE.md lists the folders"))
		}
	}
	must.LessEq(t, maxFolders, folders)
}

func report(t *testing.T, found []lint.Finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}
