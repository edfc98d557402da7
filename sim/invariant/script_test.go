package invariant_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// script plays a history of testdata/histories: a name, a line "fails CHECK, ..." or "holds",
// perhaps "text" with a part of the first violation's text, and indented steps. An empty line ends
// it.
type script struct {
	*fixture
	t       *testing.T
	options invariant.Options
	// message is the entry of "plan", and response the last response of the FSM.
	message  shims.Message
	response shims.Response
}

// written returns the histories of the files. It names a history's checks, or none if it holds.
func written(t *testing.T) (failing []broken, holding []fine) {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.txt")
	must.NoError(t, err)
	must.SliceNotEmpty(t, files)
	checks := map[string]invariant.Check{}
	for _, c := range invariant.Checks() {
		checks[c.Rule()] = c
	}
	for _, file := range files {
		for _, lines := range histories(t, file) {
			text, explains := strings.CutPrefix(lines[2], "text ")
			run := func(t *testing.T) *fixture {
				if !explains {
					return play(t, lines[2:])
				}
				s := play(t, lines[3:])
				must.StrContains(t, s.j.Violations()[0].String(), text)
				return s
			}
			names, fails := strings.CutPrefix(lines[1], "fails ")
			if !fails {
				must.Eq(t, "holds", lines[1], must.Sprint(lines[0]))
				holding = append(holding, fine{lines[0], run})
				continue
			}
			var found []invariant.Check
			for name := range strings.SplitSeq(names, ", ") {
				c, exists := checks[name]
				must.True(t, exists, must.Sprint(lines[0], ": ", name))
				found = append(found, c)
			}
			failing = append(failing, broken{lines[0], found[0], found[1:], run})
		}
	}
	return failing, holding
}

// histories returns the lines of each history in a file, without comments.
func histories(t *testing.T, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	for history := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		all = append(all, slices.DeleteFunc(strings.Split(history, "\n"), func(l string) bool { return strings.HasPrefix(l, "#") }))
	}
	return all
}

// play plays the steps of a history.
func play(t *testing.T, steps []string) *fixture {
	s := &script{t: t, options: invariant.Options{}}
	for i := 0; i < len(steps); i++ {
		words := strings.Fields(steps[i])
		if words[0] != "repeat" {
			s.step(words[0], words[1:])
			continue
		}
		block := i + 1
		for i+1 < len(steps) && strings.HasPrefix(steps[i+1], "    ") {
			i++
		}
		for range s.number(words[1]) {
			for _, step := range steps[block : i+1] {
				words := strings.Fields(step)
				s.step(words[0], words[1:])
			}
		}
	}
	return s.fixture
}

func (s *script) step(verb string, args []string) {
	s.t.Helper()
	act := scriptVerbs()[verb]
	must.NotNil(s.t, act, must.Sprint("unknown verb ", verb))
	act(s, args)
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	must.NoError(s.t, err)
	return n
}

// time returns the sum of durations.
func (s *script) time(args ...string) (sum time.Duration) {
	for _, text := range args {
		d, err := time.ParseDuration(text)
		must.NoError(s.t, err)
		sum += d
	}
	return sum
}

func ids[T ~string](args []string) (ids []T) {
	for _, a := range args {
		ids = append(ids, T(a))
	}
	return ids
}

// item returns a planned entry: "paced a1 a2", "end n1", "again web", or the entry of "plan".
func (s *script) item(args []string) shims.Message {
	switch args[0] {
	case "plan":
		return s.message
	case "end":
		return s.ends(ids[cluster.NodeID](args[1:])...)
	case "again":
		return s.again(cluster.JobID(args[1]))
	}
	return s.marks(s.class(args[0]), ids[cluster.AllocID](args[1:])...)
}

func (s *script) class(name string) cluster.MarkClass {
	for c := range cluster.MarkClassCount {
		if c.String() == name {
			return c
		}
	}
	s.t.Fatalf("there is no class %q", name)
	return 0
}

func (s *script) outcome(name string) raftwrite.Outcome {
	return map[string]raftwrite.Outcome{"applied": raftwrite.Applied, "rejected": raftwrite.Rejected, "unknown": raftwrite.Unknown}[name]
}

// setOption sets an option: "MaxIDs=2", or one of three policies and bounds by name.
func (s *script) setOption(text string) {
	name, value, _ := strings.Cut(text, "=")
	switch name {
	case "bounded":
		s.options = bounded()
		return
	case "plugins-last":
		s.options.Policy.PluginsAfterDeadline = rules.PluginsAfterStop
		return
	case "proceed":
		s.options = proceed()
		return
	case "replaced":
		s.options = replaced()
		return
	}
	switch field := reflect.ValueOf(&s.options).Elem().FieldByName(name); {
	case field.Type() == reflect.TypeFor[time.Duration]():
		field.SetInt(int64(s.time(value)))
	case field.CanFloat():
		f, err := strconv.ParseFloat(value, 64)
		must.NoError(s.t, err)
		field.SetFloat(f)
	case field.Kind() == reflect.Bool:
		field.SetBool(true)
	default:
		field.SetInt(int64(s.number(value)))
	}
}

// jobOf returns a job: "system logs 1 plugin volume".
func (s *script) jobOf(kind cluster.JobType, args []string) *cluster.Job {
	j := newJob(kind, cluster.JobID(args[0]), s.number(args[1]))
	for _, a := range args[2:] {
		switch a {
		case "plugin":
			plugin(j)
		case "volume":
			withVolume(j)
		default:
			j.TaskGroups[0].Migrate.MaxParallel = s.number(a)
		}
	}
	return j
}

// change returns the change of the leader's report at a quiet point.
func (s *script) change(text string) func(*invariant.Quiet) {
	name, value, _ := strings.Cut(text, "=")
	kind, id, _ := strings.Cut(value, ":")
	switch name {
	case "held":
		return held
	case "waiting":
		return waiting
	case "old":
		return sinceBefore
	case "followed":
		return func(q *invariant.Quiet) { q.Followed = append(q.Followed, jobKey(cluster.JobID(value))) }
	case "ends-by":
		return func(q *invariant.Quiet) {
			if q.Reports[0].EndsBy = (time.Time{}); value != "never" {
				q.Reports[0].EndsBy = s.now.Add(s.time(value))
			}
		}
	}
	must.Eq(s.t, "fresh", name)
	switch kind {
	case "end":
		return s.plansEnd(cluster.NodeID(id))
	case "again":
		return func(q *invariant.Quiet) {
			q.Fresh = &invariant.Plan{Reevaluate: []cluster.GroupKey{groupKey(cluster.JobID(id))}}
		}
	}
	return s.fresh(s.class(kind), cluster.AllocID(id))
}

func (s *script) changes(args []string) (all []func(*invariant.Quiet)) {
	for _, a := range args {
		all = append(all, s.change(a))
	}
	return all
}

// request requests a drain: "drain n1 1m ignore-system as=d7".
func (s *script) request(args []string) {
	m := s.fixture.request(cluster.NodeID(args[0]), &cluster.DrainSpec{})
	for _, a := range args[1:] {
		switch id, named := strings.CutPrefix(a, "as="); {
		case named:
			m.Drain = cluster.DrainID(id)
		case strings.HasPrefix(a, "key="):
			m.Key = strings.TrimPrefix(a, "key=")
		case a == "ignore-system":
			m.Spec.IgnoreSystemJobs = true
		case a == "forced":
			m.Spec.Deadline = -1
		default:
			m.Spec.Deadline += s.time(a)
		}
	}
	s.apply(m)
}

// beginning plays a beginning of testdata/begins.txt, or one of these.
func (s *script) beginning(name string) *fixture {
	switch name {
	case "serving plugin":
		return servingPlugin(s.t, s.options)
	case "volume in use":
		return volumeInUse(s.t)
	case "volume left":
		return volumeLeft(s.t)
	case "stuck":
		return stuck(s.t)
	case "without room":
		return withoutRoom(s.t)
	case "two namespaces":
		return twoNamespaces(s.t)
	case "reasons":
		return reasons(s.t)
	}
	for _, lines := range histories(s.t, "testdata/begins.txt") {
		if lines[0] == name {
			return play(s.t, lines[1:])
		}
	}
	s.t.Fatalf("no history begins with %q", name)
	return nil
}

// scriptVerbs are the steps of histories.
func scriptVerbs() map[string]func(s *script, args []string) {
	allocs := ids[cluster.AllocID]
	return map[string]func(s *script, args []string){
		// The beginning.
		"options": func(s *script, args []string) {
			for _, a := range args {
				s.setOption(a)
			}
		},
		"web":       func(s *script, args []string) { s.fixture = web(s.t, s.options, s.number(args[0]), s.number(args[1])) },
		"draining":  func(s *script, _ []string) { s.fixture = draining(s.t, s.options) },
		"leading":   func(s *script, _ []string) { s.fixture = leading(s.t, s.options) },
		"calm":      func(s *script, args []string) { s.fixture = calm(s.t, s.options, s.time(args...)) },
		"stages":    func(s *script, args []string) { s.fixture = allStages(s.t, s.options, s.time(args...)) },
		"beginning": func(s *script, args []string) { s.fixture = s.beginning(strings.Join(args, " ")) },
		// The world.
		"limits":    func(s *script, args []string) { s.limits(cluster.NodeID(args[0]), s.time(args[1]), s.time(args[2])) },
		"wait":      func(s *script, args []string) { s.wait(s.time(args...)) },
		"status":    func(s *script, args []string) { s.status(cluster.NodeID(args[0]), cluster.NodeStatus(args[1])) },
		"unhealthy": func(s *script, args []string) { s.unhealthy(allocs(args)...) },
		"run":       func(s *script, args []string) { s.run(allocs(args)...) },
		"unjudged":  func(s *script, args []string) { s.report(cluster.ClientRunning, nil, allocs(args)...) },
		"ended":     func(s *script, args []string) { s.ended(allocs(args)...) },
		"failed":    func(s *script, args []string) { s.failed(allocs(args)...) },
		"delete": func(s *script, args []string) {
			s.apply(&shims.NodeDeregister{At: s.now, Nodes: ids[cluster.NodeID](args)})
		},
		"stop-job": func(s *script, args []string) { s.apply(&shims.JobDeregister{Job: jobKey(cluster.JobID(args[0]))}) },
		"purge": func(s *script, args []string) {
			s.apply(&shims.JobDeregister{Job: jobKey(cluster.JobID(args[0])), Purge: true})
		},
		"close":  func(s *script, args []string) { s.closeEvals(cluster.JobID(args[0])) },
		"block":  func(s *script, args []string) { s.blockEvals(cluster.JobID(args[0])) },
		"job":    func(s *script, args []string) { s.job(s.jobOf(cluster.JobService, args)) },
		"system": func(s *script, args []string) { s.job(s.jobOf(cluster.JobSystem, args)) },
		"batch":  func(s *script, args []string) { s.job(s.jobOf(cluster.JobBatch, args)) },
		"detach": func(s *script, args []string) {
			s.apply(&shims.VolumeDetach{At: s.now, Volume: cluster.VolumeKey{Namespace: "default", ID: cluster.VolumeID(args[0])}, Node: cluster.NodeID(args[1]), Force: true})
		},
		"place": func(s *script, args []string) {
			var changes []func(*cluster.Allocation)
			for _, a := range args[3:] {
				if id, is := strings.CutPrefix(a, "replacing="); is {
					changes = append(changes, replacing(cluster.AllocID(id)))
				} else {
					changes = append(changes, canary)
				}
			}
			s.place(cluster.AllocID(args[0]), cluster.JobID(args[1]), cluster.NodeID(args[2]), changes...)
		},
		"place-past-the-log": func(s *script, args []string) { s.placePastTheLog(cluster.AllocID(args[0]), cluster.NodeID(args[1])) },
		"stop": func(s *script, args []string) {
			stop := cluster.PlanStop{Alloc: cluster.AllocID(args[0])}
			switch strings.Join(args[1:], "") {
			case "migrate":
				stop.Migrate = true
			case "lost":
				stop.Lost, stop.Description = true, cluster.DescLost
			case "rescheduled":
				stop.Description = cluster.DescRescheduled
			}
			s.stopAs(stop)
		},
		// Entries. A "!" writes past the re-check.
		"drain":  func(s *script, args []string) { s.request(args) },
		"cancel": func(s *script, args []string) { s.cancel(cluster.NodeID(args[0])) },
		"mark":   func(s *script, args []string) { s.apply(s.item(args)) },
		"mark!":  func(s *script, args []string) { s.markAnyway(s.class(args[0]), allocs(args[1:])...) },
		"refuse": func(s *script, args []string) { s.refuse(s.item(args).(*shims.AllocUpdateDesiredTransition)) },
		"end":    func(s *script, args []string) { s.end(ids[cluster.NodeID](args)...) },
		"end!": func(s *script, args []string) {
			outcome := cluster.Outcome(strings.ReplaceAll(strings.TrimSuffix(args[1], "none"), "-", " "))
			s.endAnyway(cluster.NodeID(args[0]), outcome, s.number(args[2]))
		},
		"again": func(s *script, args []string) { s.apply(s.again(cluster.JobID(args[0]))) },
		"plan":  func(s *script, args []string) { s.message = s.item(args) },
		"plan-time": func(s *script, args []string) {
			s.message.(*shims.AllocUpdateDesiredTransition).At = s.now.Add(s.time(args...))
		},
		"plan-evaluations": func(s *script, args []string) {
			m := s.message.(*shims.AllocUpdateDesiredTransition)
			if m.Evals = slices.Clone(m.Evals); args[0] == "none" {
				m.Evals = nil
			} else {
				m.Evals = append(m.Evals, s.eval(cluster.JobID(args[1])))
			}
		},
		"apply":  func(s *script, _ []string) { s.response = s.apply(s.message) },
		"apply!": func(s *script, _ []string) { s.applyUnchecked(s.message.(*shims.AllocUpdateDesiredTransition)) },
		// The drainer of term 1.
		"begin":     func(s *script, _ []string) { s.j.Began(s.now, 0, 1) },
		"end-term":  func(s *script, _ []string) { s.j.Ended(s.now, 1) },
		"lead":      func(s *script, _ []string) { s.lead(1) },
		"calm-down": func(s *script, _ []string) { s.j.Calm(s.now) },
		"clock":     func(s *script, args []string) { s.j.ClockSet(s.now, 1, s.time(args...)) },
		"set-back":  func(s *script, args []string) { s.setBack(s.time(args...)) },
		"read":      func(s *script, args []string) { s.stepped(true, args) },
		"read-at":   func(s *script, args []string) { s.readAt(1, s.now.Add(s.time(args...))) },
		"step":      func(s *script, args []string) { s.stepped(false, args) },
		"due":       func(s *script, _ []string) { s.due(1) },
		"barrier":   func(s *script, args []string) { s.barrier(1, s.number(args[0])) },
		"propose":   func(s *script, args []string) { s.proposed(s.number(args[0]), args[1:]) },
		"not-taken": func(s *script, args []string) {
			s.j.NotTaken(s.now, invariant.Write{Term: 1, N: 1, Message: s.item(args)})
		},
		"write": func(s *script, args []string) { s.write(1, s.number(args[0]), s.item(args[1:])) },
		"fail":  func(s *script, args []string) { s.fail(s.outcome(args[0])) },
		"answer": func(s *script, args []string) {
			a := shims.Answer{Outcome: s.outcome(args[1])}
			if a.Outcome == raftwrite.Applied {
				a.Index, a.Response = s.index, s.response
			}
			s.j.Answered(s.now, 1, s.number(args[0]), a)
		},
		"quiet": func(s *script, args []string) { s.quiet(s.changes(args)...) },
		"still": func(s *script, args []string) { s.still(s.changes(args)...) },
	}
}

// stepped steps the drainer. "until" sets the time of the next step.
func (s *script) stepped(reads bool, args []string) {
	if len(args) == 0 {
		s.leader.step(1, reads)
		return
	}
	s.stepUntil(1, reads, s.now.Add(s.time(args[1:]...)))
}

// proposed proposes an entry of 100 bytes, or of another size.
func (s *script) proposed(n int, args []string) {
	size := 100
	if last := len(args) - 1; strings.HasPrefix(args[last], "bytes=") {
		size = s.number(strings.TrimPrefix(args[last], "bytes="))
		args = args[:last]
	}
	s.j.Proposed(s.now, invariant.Write{Term: 1, N: n, Message: s.item(args), Bytes: size})
}
