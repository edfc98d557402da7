package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Invalid flags are refused with the messages of Nomad's command, in its order, before any
// request.
func TestNodeDrain_conflicts(t *testing.T) {
	t.Parallel()
	const (
		monitorAlone = "The -monitor flag cannot be used with the '-enable' or '-disable' flags"
		either       = "Either the '-enable' or '-disable' flag must be set, unless using '-monitor'"
		nodeOrSelf   = "Node ID must be specified if -self isn't being used"
		noStrategy   = "-disable can't be combined with flags configuring drain strategy"
		limits       = "-deadline can't be combined with -force or -no-deadline"
		forceOrNone  = "-force and -no-deadline are mutually exclusive"
	)
	for _, c := range []struct{ line, want string }{
		{"-monitor -enable abcd", monitorAlone},
		{"-monitor -disable abcd", monitorAlone},
		{"-monitor -enable -disable", monitorAlone},
		{"abcd", either},
		{"-enable -disable abcd", either},
		{"-enable -disable", either},
		{"-enable", nodeOrSelf},
		{"-monitor", nodeOrSelf},
		{"-enable abcd efgh", nodeOrSelf},
		{"-enable -self abcd", nodeOrSelf},
		{"-disable -force -deadline 1h", nodeOrSelf},
		{"-disable -deadline 1h abcd", noStrategy},
		{"-disable -force abcd", noStrategy},
		{"-disable -no-deadline abcd", noStrategy},
		{"-disable -ignore-system abcd", noStrategy},
		{"-enable -deadline 1h -force abcd", limits},
		{"-enable -deadline 1h -no-deadline abcd", limits},
		{"-enable -deadline 1h -force -no-deadline abcd", limits},
		{"--enable --force --no-deadline abcd", forceOrNone},
		{"-monitor -force -no-deadline abcd", forceOrNone},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := command(t.Context(), "node drain "+c.line)
			must.One(t, code)
			must.Eq(t, "", out)
			must.Eq(t, c.want+"\nFor additional help try 'nodedrain node drain -help'\n", errs)
		})
	}
	for _, c := range []struct{ line, want string }{
		{"-enable -deadline soon abcd", `Failed to parse deadline "soon": time: invalid duration "soon"`},
		{"-enable -deadline 0s abcd", "A positive drain duration must be given"},
		{"-enable -deadline -1h abcd", "A positive drain duration must be given"},
		{"-enable a", "Identifier must contain at least two characters."},
		{"-enable -address ftp://x abcd", "Error initializing client: invalid address 'ftp://x': it must begin with http:// or https://"},
		{"-enable -address http://127.0.0.1:1 abcd", "Error toggling drain mode: Get "},
		{"-enable -self -address http://127.0.0.1:1", "Error querying agent info: failed querying self endpoint: Get "},
		{"-enable -metal abcd", `flag provided but not defined: -metal (did you mean -meta?); "nodedrain node drain -h" lists the options`},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := command(t.Context(), "node drain "+c.line)
			must.One(t, code)
			must.Eq(t, "", out)
			must.StrHasPrefix(t, c.want, errs)
			must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
		})
	}
}

func TestNodeDrainFlags_limit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"": "1h0m0s", "-deadline 90s": "1m30s", "-no-deadline": "0s", "-force": "-1s"} {
		var f nodeDrainFlags
		_, err := arguments(f.set(), "", strings.Fields(line))
		must.NoError(t, err)
		limit, err := f.limit()
		must.NoError(t, err)
		must.Eq(t, want, limit.String())
	}
}

// The drain keeps metadata unchanged, including a key without a value.
func TestMetaFlag(t *testing.T) {
	t.Parallel()
	var f nodeDrainFlags
	_, err := arguments(f.set(), "", []string{"-meta", "a=1", "-meta", "b", "-meta", "c=x=y", "-m", "why"})
	must.NoError(t, err)
	must.Eq(t, map[string]string{"a": "1", "b": "", "c": "x=y", "message": "why"}, f.meta.with(nil, "message", f.message))
	before := map[string]string{"a": "0", "message": "first"}
	must.Eq(t, map[string]string{"a": "1", "b": "", "c": "x=y", "message": "first", "cancel_message": "why"},
		f.meta.with(before, "cancel_message", f.message))
	must.Eq(t, map[string]string{"a": "0", "message": "first"}, before)
	must.NotNil(t, new(nodeDrainFlags).meta.with(nil, "message", ""))
}

// Only the exact answer "y" confirms.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	const (
		cancelled = "sure? Canceling drain toggle\n"
		almost    = "sure? For confirmation, an exact ‘y’ is required.\n"
		nothing   = "No confirmation detected. For confirmation, an exact 'y' is required.\n"
	)
	for answer, want := range map[string]struct {
		code      int
		out, errs string
	}{
		"y\n":     {-1, "sure? ", ""},
		"Y\n":     {1, "sure? ", nothing},
		"y":       {-1, "sure? ", ""},
		"\n":      {0, cancelled, ""},
		"":        {0, cancelled, ""},
		"n\n":     {0, cancelled, ""},
		"never\n": {0, cancelled, ""},
		"yes\n":   {0, almost, ""},
		"yo\n":    {0, almost, ""},
		"ok\n":    {1, "sure? ", nothing},
	} {
		var out, errs strings.Builder
		c := operatorCommand{stdio: stdio{in: strings.NewReader(answer), out: &out, errs: &errs}}
		code := -1
		if err := c.confirmed("sure?"); err != nil {
			code = c.exit(err)
		}
		must.Eq(t, want.code, code, must.Sprintf("%q", answer))
		must.Eq(t, want.out, out.String(), must.Sprintf("%q", answer))
		must.Eq(t, want.errs, errs.String(), must.Sprintf("%q", answer))
	}
}

func TestEvenDigits(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"7c": "7c", "7c6": "7c", "7c6b3110-": "7c6b3110-", "7c6b3110-d": "7c6b3110-", "7c6b3110-d0": "7c6b3110-d0",
		"7c6b3110-d0f8-951f-b791-e76fce97e405": "7c6b3110-d0f8-951f-b791-e76fce97e405",
	} {
		must.Eq(t, want, evenDigits(prefix))
	}
}

// The help of the operators' commands matches its golden file and names every option.
func TestOperator_help(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]*flag.FlagSet{
		"node":              flag.NewFlagSet("", flag.ContinueOnError),
		"node drain":        new(nodeDrainFlags).set(),
		"node eligibility":  new(nodeEligibilityFlags).set(),
		"node explain":      new(nodeExplainFlags).set(),
		"node status":       new(nodeStatusFlags).set(),
		"drain":             flag.NewFlagSet("", flag.ContinueOnError),
		"drain list":        new(drainListFlags).set(),
		"job":               flag.NewFlagSet("", flag.ContinueOnError),
		"job init":          flag.NewFlagSet("", flag.ContinueOnError),
		"job plan":          new(jobPlanFlags).set(),
		"job run":           new(jobRunFlags).set(),
		"job status":        new(statusFlags).set("job status"),
		"job stop":          new(jobStopFlags).set(),
		"alloc":             flag.NewFlagSet("", flag.ContinueOnError),
		"alloc exec":        new(allocExecFlags).set(),
		"alloc fs":          new(allocFSFlags).set(),
		"alloc logs":        new(allocLogsFlags).set(),
		"alloc restart":     new(allocRestartFlags).set(),
		"alloc signal":      new(allocSignalFlags).set(),
		"alloc status":      new(statusFlags).set("alloc status"),
		"alloc stop":        new(allocStopFlags).set(),
		"eval":              flag.NewFlagSet("", flag.ContinueOnError),
		"eval status":       new(statusFlags).set("eval status"),
		"client":            new(clientFlags).set(),
		"clients":           new(clientsFlags).set(),
		"dev":               new(devFlags).set(),
		"plugin":            flag.NewFlagSet("", flag.ContinueOnError),
		"plugin test":       new(pluginTestFlags).set(),
		"plugin status":     new(statusFlags).set("plugin status"),
		"volume":            flag.NewFlagSet("", flag.ContinueOnError),
		"volume register":   new(connectFlags).flags("volume register"),
		"volume status":     new(statusFlags).set("volume status"),
		"volume detach":     new(volumeForceFlags).set("volume detach"),
		"volume deregister": new(volumeForceFlags).set("volume deregister"),
		"server":            new(serverFlags).set(),
		"server members":    new(serverMembersFlags).set(),
		"server join":       new(connectFlags).flags("server join"),
		"server remove":     new(connectFlags).flags("server remove"),
		"server recover":    new(serverRecoverFlags).set(),

		"operator":                  flag.NewFlagSet("", flag.ContinueOnError),
		"operator snapshot":         flag.NewFlagSet("", flag.ContinueOnError),
		"operator snapshot inspect": new(snapshotInspectCommand).flags(),
		"operator snapshot restore": new(snapshotRestoreFlags).set(),
		"operator snapshot save":    new(snapshotSaveFlags).set(),
		"system":                    flag.NewFlagSet("", flag.ContinueOnError),
		"system gc":                 new(connectFlags).flags("system gc"),
	} {
		code, out, _ := command(t.Context(), name+" -h")
		must.Zero(t, code)
		golden(t, "help/"+strings.ReplaceAll(name, " ", "_")+".golden", out)
		set.VisitAll(func(f *flag.Flag) { must.StrContains(t, out, "-"+f.Name) })
		for i, line := range strings.Split(out, "\n") {
			must.LessEq(t, 90, len(line), must.Sprintf("%s: line %d: %s", name, i+1, line))
		}
	}
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
