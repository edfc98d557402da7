package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// forgets ends a process of which the driver then has no task. The open calls of Wait get this answer, or
// none.
func forgets(n *node, p *task, answers bool) {
	n.log("%s ends, and the driver forgets it", p.id)
	p.alive, p.known, p.ended = false, false, n.boot
	p.exit = &driver.ExitResult{Code: 1}
	for _, w := range p.waiters {
		if answers {
			w(driver.ExitResult{}, &driver.Error{Class: driver.NotFound, Call: "WaitTask", Err: errors.New("task not found for given id")})
		}
	}
	p.waiters = nil
	answerStops(n, p)
	for _, empty := range p.emptied {
		empty(nil)
	}
	p.emptied = nil
}

// A task ends by itself while the core waits for something else: at each wait, in each way. The restart policy
// permits two restarts. The core comes to the same end as if the task had waited, and never starts a
// second copy. Bug: an end during the shutdown delay of an operator's restart counted for the policy.
func TestExit_duringEachWait(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*node, *task){
		"exits":             func(n *node, p *task) { n.exit(p, 1, 0) },
		"succeeds":          func(n *node, p *task) { n.exit(p, 0, 0) },
		"forgotten":         func(n *node, p *task) { forgets(n, p, true) },
		"forgotten, silent": func(n *node, p *task) { forgets(n, p, false) },
	}
	for name, tt := range map[string]struct {
		web   script
		wait  func(*node)
		after func(*node) // the end of the wait, or nil
		// ends: the allocation is complete then. Otherwise the task runs again. counts: the end counts for the
		// restart policy.
		ends, counts bool
	}{
		"nothing":                 {wait: func(*node) {}, counts: true},
		"restart, shutdown delay": {wait: func(n *node) { n.restart("a", "web", false) }},
		"restart, grace":          {web: script{ignores: true}, wait: func(n *node) { n.restart("a", "web", false); n.run(4 * time.Second) }},
		"restart of all":          {wait: func(n *node) { n.restart("a", "", true) }},
		"stop, shutdown delay":    {wait: func(n *node) { n.stop("a") }, ends: true},
		"stop, grace":             {web: script{ignores: true}, wait: func(n *node) { n.stop("a"); n.run(4 * time.Second) }, ends: true},
		"stop that waits":         {web: script{ignores: true, stopWaits: true, stopLag: time.Second}, wait: func(n *node) { n.stop("a"); n.run(4 * time.Second) }, ends: true},
		"stop that fails":         {web: script{ignores: true, stopError: errors.New("no")}, wait: func(n *node) { n.stop("a"); n.run(4 * time.Second) }, ends: true},
		"inspection": {
			web: script{hangsAt: "InspectTask"}, counts: true, wait: func(n *node) { n.run(client.InspectInterval - time.Minute) },
			after: func(n *node) { n.scripts["web"] = script{} },
		},
		"full disk":   {wait: func(n *node) { n.fullDisk = true; n.stop("a") }, after: func(n *node) { n.fullDisk = false }, ends: true},
		"driver":      {wait: (*node).killDriver, counts: true},
		"next client": {wait: (*node).crash, after: (*node).answer, counts: true},
		"servers":     {wait: func(n *node) { n.silent = true }, after: func(n *node) { n.silent = false }, counts: true},
	} {
		for kind, end := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				n := newNode(t)
				n.scripts["web"] = tt.web
				web := mainTask("web")
				web.ShutdownDelay = 3 * time.Second
				n.place(allocation("a", web))
				n.run(time.Minute)
				rounds := 3
				if tt.ends || tt.counts {
					rounds = 1
				}
				for range rounds {
					must.Len(t, 1, n.live("web"), must.Sprint(n.storyOf()))
					process := n.live("web")[0]
					tt.wait(n)
					n.run(time.Second)
					end(n, process)
					n.run(time.Second)
					if tt.after != nil {
						tt.after(n)
					}
					n.run(2*client.InspectInterval + time.Minute)
				}
				if !tt.ends {
					must.Len(t, 1, n.live("web"), must.Sprint(n.storyOf()))
					must.EqOp(t, cluster.ClientRunning, n.status("a"), must.Sprint(n.storyOf()))
					must.EqOp(t, uint64(rounds), n.taskState("a", "web").Restarts)
					ends(n, "a", time.Minute)
				}
				must.EqOp(t, cluster.ClientComplete, n.status("a"), must.Sprint(n.storyOf()))
				must.Len(t, 0, n.live(""))
			})
		}
	}
}

// limited is an allocation that may run for ten minutes.
func limited(kind cluster.JobType, tasks ...*cluster.Task) *cluster.Allocation {
	a := allocation("a", tasks...)
	a.Job.Type, a.Job.TaskGroups[0].MaxRunDuration = kind, 10*time.Minute
	return a
}

// An allocation that has run for the longest time of its group is stopped, and has failed, although its tasks exit
// with 0. Restarts of tasks and of the client do not begin the time again.
func TestMaxRunDuration(t *testing.T) {
	const reason = "the allocation has run for its max_run_duration of 10m0s"
	for _, kind := range []cluster.JobType{cluster.JobBatch, cluster.JobService, cluster.JobSystem} {
		t.Run(string(kind), func(t *testing.T) {
			n := newNode(t)
			n.scripts["web"] = script{runs: []ending{{after: 3 * time.Minute, code: 1}, {}}}
			n.place(limited(kind, mainTask("web")))
			n.run(5 * time.Minute)
			restarts(n, 4*time.Minute)
			must.EqOp(t, cluster.ClientRunning, n.status("a"))
			reaches(n, "a", cluster.ClientFailed, 2*time.Minute)
			must.StrContains(t, n.messages("a", "web"), "The client stops the task: "+reason)
			must.EqOp(t, reason, n.servers["a"].ClientDescription)
			must.Len(t, 0, n.live(""))
		})
	}
}

// An allocation whose time is over is stopped in the order of every stop, also by the next client: the poststop task
// runs, and its end does not change that the allocation has failed.
func TestMaxRunDuration_order(t *testing.T) {
	n := newNode(t)
	n.scripts["web"], n.scripts["after"] = script{stopTakes: 3 * time.Second}, script{runs: []ending{{after: time.Second}}}
	n.place(limited(cluster.JobService, mainTask("web"), hooked("after", cluster.HookPoststop, false)))
	n.run(10*time.Minute + time.Second)
	must.Len(t, 0, n.live("after"))
	restarts(n, 30*time.Second)
	must.EqOp(t, cluster.ClientFailed, n.status("a"))
	must.StrContains(t, n.messages("a", "after"), "Exit Code: 0")
}

// Work that has ended in its time, and an allocation that the servers stopped before, have not failed.
func TestMaxRunDuration_endsBefore(t *testing.T) {
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: 9 * time.Minute}}}
	n.place(limited(cluster.JobBatch, mainTask("web")))
	reaches(n, "a", cluster.ClientComplete, 11*time.Minute)

	n = newNode(t)
	n.scripts["web"] = script{ignores: true}
	slow := mainTask("web")
	slow.KillTimeout = 5 * time.Minute
	n.place(limited(cluster.JobService, slow))
	n.run(8 * time.Minute)
	n.stop("a")
	reaches(n, "a", cluster.ClientComplete, 6*time.Minute)
}
