package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// lines are the first lines of a scenario.
const lines = `# why
node n1..n3
job web count=2
job shop
group shop.api count=3
`

// An error names the line, and the word that was probably intended.
func TestParse_Errors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"nod n4":                                       `unknown directive "nod", did you mean "node"?`,
		"please":                                       `unknown directive "please": expected one of seed, cluster, drainer, node, volume, job, group, alloc, client, at, run`,
		"seed":                                         `seed takes one number: seed 7`,
		"seed -1":                                      `"-1" is not a seed: a seed is a number from 0 to 2^64-1`,
		"cluster server=3":                             `unknown word "server", did you mean "servers"?`,
		"cluster servers=0":                            `servers: "0": at least 1`,
		"cluster servers=3000000000":                   `servers: "3000000000": at most 2147483647`,
		"cluster commit=never":                         `commit: never is not allowed: the run would stop`,
		"cluster commit=5s..1s":                        `commit: "5s..1s": the second time is less than the first`,
		"cluster replicas=yes":                         `"replicas" takes no value`,
		"cluster wake":                                 `"wake" needs a value: wake=VALUE`,
		"drainer below-budget=wait":                    `below-budget: unknown value "wait": expected one of hold, proceed`,
		"drainer queries=0":                            `queries: "0" is not a number above zero`,
		"drainer queries=NaN":                          `queries: "NaN" must be > 0`,
		"drainer coalesce=0s":                          `coalesce: "0s": leave it out for the default`,
		"drainer retry=0s":                             `retry: "0s": leave it out for the default`,
		"node":                                         `the node's name is missing`,
		"node n1":                                      `node n1 is already on line 2`,
		"node n7..n5":                                  `n7..n5: the second number is less than the first`,
		"node n7..m9":                                  `n7..m9 is not a range: the two names may differ only in the number at the end`,
		"node a..b":                                    `a..b is not a range: the two names may differ only in the number at the end`,
		"node n7..n09":                                 `n7..n09: write n9`,
		"node n.7":                                     `"n.7" is not a name: a name has letters, digits, - and _`,
		"node n7 cpu=lots":                             `cpu: "lots" is not a whole number`,
		"node n7 cpu=1 cpu=2":                          `"cpu" is given twice`,
		"node n7 devices=gpu":                          `devices: "gpu": write a kind and a count: gpu:4`,
		"node n7 devices=gpu:0":                        `devices: "0": at least 1`,
		"node n7 devices=gpu:65":                       `devices: "65": at most 64`,
		"node n7 devices=a/gpu:1":                      `devices: "a/gpu" is not a kind of devices: write type or vendor/type/name`,
		"node n7 devices=gpu:1,b/gpu/one:1":            `devices: "b/gpu/one:1": another kind has this type and this name`,
		"node n7 devices=gpu:1:memory":                 `devices: "memory": write a name, one of = != < <= > >=, and a number`,
		"node n7 devices=gpu:1:memory>=1":              `devices: "memory>=1": an attribute is name=number`,
		"node n7 devices=gpu:1:memory=1:memory=2":      `devices: "memory=2": the attribute occurs twice`,
		"node n7 gpu=1 devices=gpu:1":                  `gpu and devices exclude each other`,
		"node n7 status=gone":                          `status: unknown value "gone": expected one of ready, initializing, down, disconnected`,
		"job":                                          `the job's name is missing`,
		"job web":                                      `job web is already on line 3`,
		"job a/b/c":                                    `"b/c" is not a name: a name has letters, digits, - and _`,
		"job x type=cron":                              `type: unknown value "cron": expected one of service, batch, system, sysbatch`,
		"job x priority=101":                           `priority: "101": at most 100`,
		"job x count=-1":                               `count: "-1": at least 0`,
		"job x count=2000000":                          `count: "2000000": at most 1000000`,
		"job x devices=gpu:1:memory>=lots":             `devices: "lots" is not a whole number`,
		"job x devices=gpu:1:memory!1":                 `devices: "memory!1": write a name, one of = != < <= > >=, and a number`,
		"job x gpu=1 devices=gpu:1":                    `gpu and devices exclude each other`,
		"job x volumes=data":                           `there is no volume data`,
		"job x volumes=data[]":                         `there is no volume data[]`,
		"job x volumes=data:rw":                        `volumes: "data:rw" is not a name: a name has letters, digits, - and _`,
		"job x plugin=":                                `"plugin" needs a value: plugin=VALUE`,
		"volume":                                       `the volume's name is missing`,
		"volume data[2..1] plugin=disks":               `"data[2..1]": indexes must increase, to at most 1000000`,
		"group shop.api":                               `group shop.api is already declared`,
		"group web.api":                                `group web.api must follow the line of job web`,
		"alloc":                                        `the group is missing`,
		"alloc web":                                    `"on" is missing: on=VALUE`,
		"alloc web on=n9":                              `on: there is no node n9`,
		"alloc web[1 on=n1":                            `"web[1" has no valid index: write web[0] or web[0..5]`,
		"alloc web[5..1] on=n1":                        `"web[5..1]": indexes must increase, to at most 1000000`,
		"alloc wob on=n1":                              `there is no job wob`,
		"alloc web.api on=n1":                          `job web has no group api`,
		"alloc shop on=n1":                             `job shop has no group shop`,
		"alloc web on=n1 health=ill":                   `health: unknown value "ill": expected one of good, bad, none`,
		"client web":                                   `a client line needs a parameter`,
		"client @n9 stop=1s":                           `there is no node n9`,
		"client web unhealthy=2":                       `unhealthy: "2": at most 1`,
		"client web stop=2":                            `stop: "2" is not a time: write 5s, 10m or 1h30m`,
		"client web stop=-2s":                          `stop: "-2s" is below zero`,
		"at":                                           `the time is missing`,
		"at +5x drain n1":                              `"5x" is not a time: write 5s, 10m or 1h30m`,
		"at +-5s drain n1":                             `"-5s" is below zero`,
		"at 5s":                                        `the operation is missing`,
		"at noon drain n1":                             `"noon" is not a time: write 5s, 10m or 1h30m`,
		"at 2000000h drain n1":                         `"2000000h" is more than a hundred years`,
		"at 5s drian n1":                               `unknown operation "drian", did you mean "drain"?`,
		"at 5s drain":                                  `the subject of drain is missing`,
		"at 5s drain n9":                               `there is no node n9`,
		"at 5s drain n1,n1":                            `n1 is listed twice`,
		"at 5s drain n1 deadlin=5m":                    `unknown word "deadlin", did you mean "deadline"?`,
		"at 5s drain n1 deadline=x":                    `deadline: "x" is not a time: write 5s, 10m or 1h30m; a deadline may also be none, force or infinite`,
		"at 5s drain n1 deadline=0s":                   `deadline: "0s": write none or force`,
		"at 5s before noon drain n1":                   `unknown kind of entry "noon": expected one of marks, completion, plan, report, collect`,
		"at 5s edit web[0] count=1":                    `"web[0]" is neither a job nor a group`,
		"at 5s edit web remove":                        `remove and rename need one group: write job.group`,
		"at 5s edit shop.api remove rename=x":          `remove and rename exclude each other`,
		"job x check=5s/1s":                            `a check needs a service: write service check=5s/1s`,
		"job x service check=5s":                       `check: "5s": write 5s/1s, 5s/1s:ignored or 5s/1s:restart:3/10s: "" is not a time: write 5s, 10m or 1h30m`,
		"job x service check=5s/1s:restart:0/1s":       `check: "5s/1s:restart:0/1s": write 5s/1s, 5s/1s:ignored or 5s/1s:restart:3/10s`,
		"job x service check=5s/1s:may":                `check: "5s/1s:may": write 5s/1s, 5s/1s:ignored or 5s/1s:restart:3/10s`,
		"job x service check=5s/100ms":                 `check: "5s/100ms": the interval and the timeout are at least 1s`,
		"job a_b service":                              `a_b: no service can have this name: write letters, digits and inner hyphens`,
		"at 5s target web":                             `the change of web is missing`,
		"at 5s target web stops":                       `unknown change "stops": expected one of fails, hangs, passes`,
		"at 5s edit shop.api remove count=1":           `remove excludes count, max-parallel, max-surge, version and service`,
		"at 5s fail web":                               `"web" is not one allocation: write web[0]`,
		"at 5s fail web[0]@n9":                         `there is no node n9`,
		"at 5s node n1 daun":                           `unknown change "daun", did you mean "down"?`,
		"at 5s volume data detach on=n1":               `there is no volume data`,
		"at 5s elect s2":                               `there is no server s2: the cluster has 1`,
		"at 5s pause":                                  `"for" is missing: for=VALUE`,
		"at 5s clock":                                  `"ahead" is missing: ahead=VALUE`,
		"at 5s restore now":                            `unknown word "now": no more words are allowed here`,
		"at 5s fault apply/regect":                     `unknown fault "apply/regect", did you mean "apply/reject"?`,
		"at 5s fault apply/reject p=0":                 `p: "0": a fault that never strikes has no effect`,
		"at 5s fault apply/reject on=drain":            `on: unknown writes "drain", did you mean "drainer"?`,
		"at 5s fault apply/reject delay=1s":            `apply/reject has no delay`,
		"at 5s fault watch/delay":                      `watch/delay needs a delay`,
		"at 5s fault node/crash delay=1s count=2":      `node/crash strikes once, when it is armed: it takes neither count nor for`,
		"at 5s fault leader/flap on=n1":                `on: leader/flap has no target`,
		"at 5s fault sched/fail-eval on=web[0]":        `on: the target of sched/fail-eval is a job`,
		"at 5s fault apply/partial-refuse on=@n1":      `on: the target of apply/partial-refuse is a job or a group`,
		"at 5s fault client/mute on=default/web":       `on: "default/web": write web`,
		"at 5s fault node/crash delay=1s on=n9":        `on: there is no node n9`,
		"run until=5m":                                 `unknown word "until": expected one of for, calm, cut-servers, cut-nodes, drained, brief`,
		"run calm=1m cut-servers=s1":                   `1 of 1 servers are not a minority: no server could lead`,
		"run calm=1m cut-servers=n1":                   `cut-servers: "n1" is not a server: servers are s1, s2`,
		"run cut-nodes=n1":                             `cut-servers and cut-nodes need calm=`,
		"at 5s drain " + strings.Repeat("x", 101):      `a name of 101 characters: at most 100`,
		"job web1..web2 count=1\ngroup web2.x count=1": `group web2.x must follow the line of job web2`,
	} {
		_, _, err := scenario.Parse("somewhere/case.drain", strings.NewReader(lines+line+"\n"))
		last := 6 + strings.Count(line, "\n")
		must.EqError(t, err, fmt.Sprintf("somewhere/case.drain:%d: %s", last, want), must.Sprint(line))
	}
}

// Volumes need real clients, and a group may use only those that are declared above it.
func TestParse_Volumes(t *testing.T) {
	t.Parallel()
	const file = "# why\ncluster clients=real\nnode n1\nvolume data1..data2 plugin=disks access=multi-node-reader-only\nvolume own[0..1] plugin=disks\n"
	for text, want := range map[string]string{
		"# why\nvolume data plugin=disks\n":             `case.drain:2: volumes need clients=real`,
		"# why\nnode n1\nnode n2..n3 containers\n":      `case.drain:3: containers needs clients=real`,
		"# why\ncluster hold=1m\n":                      `case.drain:2: hold needs clients=real`,
		"# why\njob x\njob disks plugin=disks\n":        `case.drain:3: plugin=disks needs clients=real`,
		file + "volume data":                            `case.drain:6: "plugin" is missing: plugin=VALUE`,
		file + "volume data plugin=disks access=all":    `case.drain:6: access: unknown value "all": expected one of single-node-reader-only, single-node-writer, multi-node-reader-only, multi-node-single-writer, multi-node-multi-writer`,
		file + "job x plugin=disks:monolith:controller": `case.drain:6: plugin: "disks:monolith:controller": a plugin has one type`,
		file + "volume data2 plugin=disks":              `case.drain:6: volume data2 is already on line 4`,
		file + "volume own[1] plugin=disks":             `case.drain:6: volume own[1] is already on line 5`,
		file + "job x volumes=data1":                    `case.drain:6: volume data1 is read only: write data1:ro`,
		file + "job x volumes=data1:ro,data1:ro":        `case.drain:6: volumes: data1 is listed twice`,
		file + "job x plugin=disks:nod":                 `case.drain:6: plugin: unknown type "nod", did you mean "node"?`,
		file + "job x volumes=own":                      `case.drain:6: there is no volume own`,
		file + "job blue/x volumes=data1:ro":            `case.drain:6: volumes are in the default namespace`,
		file + "at 5s volume data1 detach":              `case.drain:6: "on" is missing: on=VALUE`,
		file + "at 5s volume own[0] detech on=n1":       `case.drain:6: unknown change "detech", did you mean "detach"?`,
		file + "at 5s volume own[0] detach on=n7":       `case.drain:6: on: there is no node n7`,
		file + "at 5s volume own[0] register force":     `case.drain:6: unknown word "force": no more words are allowed here`,
		file + "job x volumes=data1:ro,own[] plugin=d:controller:unstaged\nat 5s volume own[0] deregister force\n": ``,
	} {
		_, _, err := scenario.Parse("case.drain", strings.NewReader(text))
		if want == "" {
			must.NoError(t, err)
			continue
		}
		must.EqError(t, err, want, must.Sprint(text))
	}
}

// One error lists several mistakes, up to a limit.
func TestParse_ManyErrors(t *testing.T) {
	t.Parallel()
	_, _, err := scenario.Parse("case.drain", strings.NewReader("# why\nnode n1 cpu=x dsk=1\n\nfoo\nat 0s drain n2\n"))
	must.EqError(t, err, `case.drain:2: cpu: "x" is not a whole number
case.drain:2: unknown word "dsk", did you mean "disk"?
case.drain:4: unknown directive "foo": expected one of seed, cluster, drainer, node, volume, job, group, alloc, client, at, run
case.drain:5: there is no node n2`)

	_, _, err = scenario.Parse("case.drain", strings.NewReader(strings.Repeat("foo\n", 1000)))
	must.Eq(t, 20, strings.Count(err.Error(), "\n")+1)
}

// Declarations come before events, single directives come once, and there are two expected texts.
func TestParse_Order(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"node n1\nat 0s drain n1\nnode n2\n": `case.drain:3: "node" must come before the first "at"`,
		"seed 1\nseed 2\n":                   `case.drain:2: "seed" is already on line 1`,
		"run for=1s\n\nrun for=2s\n":         `case.drain:3: "run" is already on line 1`,
		"----\n----\n----\n":                 `case.drain:4: more than two expected texts: there are only the story and the end`,
	} {
		_, _, err := scenario.Parse("case.drain", strings.NewReader(text))
		must.EqError(t, err, want, must.Sprint(text))
	}
}

// A file above a limit is refused.
func TestParse_Bounds(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"case.drain is longer than 1048576 bytes":                                    strings.Repeat("# far too long\n", 1<<17),
		"case.drain has more than 10000 lines":                                       strings.Repeat("\n", 10_000),
		"case.drain is not text":                                                     "# \xff\n",
		"case.drain:1: too many names: the ranges of a file may expand to a million": "node n1..n999999999",
		"case.drain:1: more than 100000 nodes":                                       "node n1..n100001",
		"case.drain:1: more than 100000 jobs":                                        "job n1..n100001",
		"case.drain:3: more than 1000000 allocations":                                "node n1\njob web\nalloc web[0..1000000] on=n1",
		"case.drain:12: too many names: the ranges of a file may expand to a million": "node n1..n100000\n\n" +
			strings.Repeat("at 0s drain n1..n100000\n", 50),
	} {
		_, _, err := scenario.Parse("case.drain", strings.NewReader(text))
		must.ErrorContains(t, err, want)
	}
}

func TestParse_ReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	_, _, err := scenario.Parse("case.drain", iotest.ErrReader(broken))
	must.ErrorIs(t, err, broken)
}

// Comments, blank lines, spaces and carriage returns have no meaning.
func TestParse_Form(t *testing.T) {
	t.Parallel()
	s, warnings := parse(t, "\r\n  #  Why,\r\n#and why not.\r\n#\r\n\r\n# no prose\r\n\tnode   n1 # one\r\nat 0s drain n1\r\n---- \r\n\r\nfirst\r\n  second  \r\n----\r\n")
	must.SliceEmpty(t, warnings)
	must.Eq(t, &scenario.Scenario{
		Name:   "case",
		Prose:  []string{" Why,", "and why not.", ""},
		Nodes:  []scenario.Node{{IDs: []cluster.NodeID{"n1"}}},
		Events: []scenario.Event{{Line: 8, Op: &scenario.Drain{Nodes: []cluster.NodeID{"n1"}}}},
		Story:  "first\n  second",
	}, s)
}

// A job has a group with its own name, unless its line has no parameter of a group and others follow.
func TestParse_GroupsOfJobs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"job web":                                     "web:1",
		"job web count=0":                             "web:0",
		"job web type=batch kill=1m":                  "web:1",
		"job web\ngroup web.api count=2":              "api:2",
		"job web stopped\ngroup web.api count=2":      "api:2",
		"job web count=3\ngroup web.api count=2":      "web:3 api:2",
		"job web plugin\ngroup web.api":               "web:1 api:1",
		"job web\ngroup web.api\ngroup web.web":       "api:1 web:1",
		"job web\ngroup web\ngroup web.api count=4":   "web:1 api:4",
		"job web\n\n# both\ngroup web.a\ngroup web.b": "a:1 b:1",
	} {
		s, _ := parse(t, text+"\n")
		var groups []string
		for _, g := range s.Jobs[0].Groups {
			groups = append(groups, fmt.Sprintf("%s:%d", g.Name, g.Count))
		}
		must.Eq(t, want, strings.Join(groups, " "), must.Sprint(text))
	}
}

// A range of jobs equals one line for each job.
func TestParse_RangesOfJobs(t *testing.T) {
	t.Parallel()
	short, _ := parse(t, "node n1..n3\njob blue/sum9..sum11 count=2\nalloc blue/sum9..sum11[0..1] on=n1..n3\n")
	long, _ := parse(t, `
		node n1..n3
		job blue/sum9 count=2
		job blue/sum10 count=2
		job blue/sum11 count=2
		alloc blue/sum9[0..1] on=n1
		alloc blue/sum10[0..1] on=n2
		alloc blue/sum11[0..1] on=n3
	`)
	must.Eq(t, long, short)
	_, _, err := scenario.Parse("case.drain", strings.NewReader("node n1..n3\njob sum1..sum3\nalloc sum1..sum3 on=n1..n2\n"))
	must.EqError(t, err, "case.drain:3: on: 3 jobs need one node, or a range of 3 nodes")
}

// More allocations than the scheduler can place in reasonable time are refused, with the line.
func TestParse_MaxWanted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"node n1..n1000\njob web count=900000":                     "case.drain:2: the sum of counts down to job web is more than 100000",
		"node n1\njob a count=60000\njob b\ngroup b.x count=40001": "case.drain:3: the sum of counts down to job b is more than 100000",
		"node n1\njob a\nat 0s edit a count=100001":                "case.drain:3: count=100001: at most 100000",
	} {
		_, _, err := scenario.Parse("case.drain", strings.NewReader(text+"\n"))
		must.EqError(t, err, want)
	}
}

// A valid but unlikely value is read, with a warning.
func TestParse_Warnings(t *testing.T) {
	t.Parallel()
	const undrained = "nothing is drained"
	for line, want := range map[string]string{
		"job x count=2 max-parallel=3":                    "x: max-parallel 3 is more than the count of 2",
		"job x kill=25h":                                  "x: kill=25h is more than a day",
		"job x min-healthy=6m":                            "x: min-healthy=6m is more than the healthy deadline of 5m",
		"job x type=batch service check=5s/1s":            "x: batch work has no check",
		"job x service check=5s/1s\nat 0s target x fails": "no check runs: the file has no clients=real",
		"cluster clients=real\njob x service check=5s/1s\nat 0s target web hangs": "no group of web has a check",
		"job x classes=a":                           "x: no node above is of class a",
		"cluster commit=2m":                         "commit=2m is more than a minute",
		"run for=5m calm=5m":                        "calm=5m is not before the end at 5m",
		"at 0s drain n1 deadline=1ms":               "a deadline of 1ms: write force for no wait",
		"at 0s drain n1 deadline=87600h":            "a deadline of 87600h is more than a month",
		"at 0s clock ahead=-48h":                    "a clock is set -48h ahead",
		"at 0s elect believes=2m":                   "a leader acts as one for 2m after its term",
		"at 0s edit web count=2 max-parallel=3":     "max-parallel 3 is more than the count of 2",
		"at 0s fault apply/reject p=0.0001 count=5": "apply/reject is armed until it has struck 5 times, at one opportunity of 10000",
		"at 0s fault apply/slow delay=1ns":          "apply/slow: a delay of 1ns has no effect",
		"at 0s fault apply/slow for=100000h":        "apply/slow is armed for 100000h, which is more than a day",
		"at 9s drain n1\nat 5s restore":             "this event at 5s comes after an event at 9s",
		"run for=5m\nat 5m restore":                 "no event happens at 5m: for=5m",
		"run calm=5m\nat 5m fault apply/reject":     "no fault strikes at 5m: calm=5m",
		strings.Repeat("at 0s restore\n", 2001):     "more than 2000 events",
	} {
		text := lines + strings.TrimSuffix(line, "\n") + "\n"
		_, warnings := parse(t, text)
		if want != undrained {
			warnings = slices.DeleteFunc(warnings, func(w scenario.Warning) bool { return w.Text == undrained })
		}
		must.Len(t, 1, warnings, must.Sprint(line))
		must.Eq(t, want, warnings[0].Text)
		must.Eq(t, strings.Count(text, "\n"), warnings[0].Line, must.Sprint(line))
	}
	_, warnings := parse(t, "# Why.\nnode n1\njob web count=2\nalloc web[0] on=n1\nalloc web[0] on=n1\n")
	must.Len(t, 2, warnings)
	must.Eq(t, undrained, warnings[0].Text)
	must.Eq(t, "case.drain:3: warning: web[0] is declared twice", warnings[1].String())
	_, warnings = parse(t, "node n1\njob web count=1\nalloc web[0..2] on=n1\nat 0s drain n1\n")
	must.Len(t, 2, warnings)
	must.Eq(t, "case.drain:1: warning: no comment at the beginning states why the scenario exists", warnings[0].String())
	must.Eq(t, "case.drain:2: warning: web: 3 allocations with a count of 1", warnings[1].String())
}

// A time with a + counts from the event of the line before, also if that one is relative. The first
// one counts from the beginning.
func TestParse_relativeTimes(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Parse("waves.drain", strings.NewReader("# why\nnode n1..n4\nat +1m drain n1\nat +5m drain n2\nat +0s drain n3\nat 2m drain n4\nat +1s before marks cancel n4\n"))
	must.NoError(t, err)
	var at []time.Duration
	for _, e := range s.Events {
		at = append(at, e.At)
	}
	must.Eq(t, []time.Duration{time.Minute, 6 * time.Minute, 6 * time.Minute, 2 * time.Minute, 121 * time.Second}, at)
	must.StrContains(t, print(t, s), "at 6m drain n2\nat 6m drain n3\n")

	_, _, err = scenario.Parse("waves.drain", strings.NewReader("# why\nnode n1\nat 800000h drain n1\nat +800000h restore\n"))
	must.ErrorContains(t, err, `waves.drain:4: "+800000h" is more than a hundred years after the beginning`)
}
