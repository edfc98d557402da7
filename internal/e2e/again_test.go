package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// lossSite is a site with two nodes, whose server loses them.
type lossSite struct {
	*site
	env    []string          // of commands that connect to the server
	own    map[string]string // the lines of the real client's block of servers
	kind   string            // the driver of the tasks
	real   *realNode
	second *realNode
}

// startLossSite starts the server. If it is secure, it demands certificates and tokens.
func startLossSite(t *testing.T, secure bool) *lossSite {
	t.Helper()
	s := &lossSite{
		site: &site{servers: &servers{t: t}, binary: filepath.Join(t.TempDir(), "nodedrain"), dir: t.TempDir()},
		own:  map[string]string{}, kind: "mock",
	}
	programs.Build(t, "../../cmd/nodedrain", s.binary)
	t.Cleanup(s.clean)
	ports := freePorts(t, 2)
	s.address = "http://" + ports[0]
	s.server = exec.Command(s.binary, "server", "-data-dir", filepath.Join(s.dir, "server"), "-bootstrap-expect", "1", "-http", ports[0], "-bind", ports[1], "-log-level", "error")
	if secure {
		s.secure()
		s.address = "https://" + ports[0]
	}
	s.config.Address = s.address
	s.env = append(s.env, "NOMAD_ADDR="+s.address, "NOMAD_TOKEN="+s.config.SecretID)
	s.beginServer()
	var err error
	s.api, err = api.NewClient(&s.config)
	must.NoError(t, err)
	s.leads()
	s.nodedrain("operator", "snapshot", "save", s.saved())
	s.real = s.beginSecure("real", s.own, "plugin \"raw_exec\" {}\n")
	s.second = s.beginSecure("second", s.own, "plugin \"raw_exec\" {}\n")
	return s
}

// secure makes the server demand certificates and tokens.
func (s *lossSite) secure() {
	needMachine(s.t.(*testing.T))
	ca, name := newAuthority(s.t.(*testing.T), "the cluster's authority"), agent.ServerName("global")
	ca.sign("server", name, "localhost")
	ca.sign("operator", "operator")
	writes, write, err := access.Generate("ops", access.Write)
	must.NoError(s.t, err)
	registers, node, err := access.Generate("machines", access.Node)
	must.NoError(s.t, err)
	tokens, token := filepath.Join(s.dir, "tokens"), filepath.Join(s.dir, "token")
	must.NoError(s.t, os.WriteFile(tokens, []byte(write.Line()+"\n"+node.Line()+"\n"), 0o600))
	must.NoError(s.t, os.WriteFile(token, []byte(registers.Reveal()+"\n"), 0o600))
	s.server.Args = append(s.server.Args, "-tokens", tokens, "-ca", ca.file("ca.pem"), "-cert", ca.file("server.pem"), "-key", ca.file("server-key.pem"))
	s.config.SecretID = writes.Reveal()
	s.config.TLSConfig = &api.TLSConfig{CACert: ca.file("ca.pem"), ClientCert: ca.file("operator.pem"), ClientKey: ca.file("operator-key.pem"), TLSServerName: name}
	s.env = append(s.env, "NOMAD_CACERT="+ca.file("ca.pem"), "NOMAD_CLIENT_CERT="+ca.file("operator.pem"), "NOMAD_CLIENT_KEY="+ca.file("operator-key.pem"),
		"NOMAD_TLS_SERVER_NAME="+name)
	s.own = map[string]string{
		"ca_file": ca.file("ca.pem"), "cert_file": ca.file("operator.pem"), "key_file": ca.file("operator-key.pem"), "server_name": name, "token_file": token,
	}
	s.kind = "raw_exec"
}

// saved is the file with the state from before the registration of the nodes.
func (s *lossSite) saved() string { return filepath.Join(s.dir, "saved") }

// nodedrain runs a command of an operator.
func (s *lossSite) nodedrain(args ...string) {
	s.t.Helper()
	c := exec.Command(s.binary, args...)
	c.Env = append(os.Environ(), s.env...)
	text, err := c.CombinedOutput()
	must.NoError(s.t, err, must.Sprint(string(text)))
}

func (s *lossSite) leads() {
	s.t.Helper()
	s.await("a leader", func() bool {
		leader, err := s.api.Status().Leader()
		return err == nil && leader != ""
	})
}

// wipe starts the server again without its data.
func (s *lossSite) wipe() {
	s.t.Helper()
	must.NoError(s.t, s.server.Process.Kill())
	_ = s.server.Wait() // the error is only that it was killed
	must.NoError(s.t, os.RemoveAll(filepath.Join(s.dir, "server")))
	s.beginServer()
	s.leads()
}

// ready waits until both nodes are registered, and returns their ids.
func (s *lossSite) ready(step string) (ids []string) {
	s.t.Helper()
	s.await(step, func() bool {
		ids = nil
		nodes, _, err := s.api.Nodes().List(nil)
		for _, n := range nodes {
			if n.Status == "ready" {
				ids = append(ids, n.ID)
			}
		}
		return err == nil && len(ids) == 2
	})
	slices.Sort(ids)
	return ids
}

// runs registers a system job, and waits until it runs on both nodes.
func (s *lossSite) runs(job string) {
	s.t.Helper()
	kind, cpu, memory := "system", 10, 10
	task := api.NewTask("t", s.kind).Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
	if s.kind == "raw_exec" {
		task.Config = map[string]any{"command": "/bin/sleep", "args": []string{"100000"}}
	} else {
		task.Config = map[string]any{"run_for": "24h"}
	}
	_, _, err := s.api.Jobs().Register((&api.Job{ID: &job, Name: &job, Type: &kind, Datacenters: []string{"dc1"}}).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task)), nil)
	must.NoError(s.t, err)
	s.runOnBoth(job)
}

func (s *lossSite) runOnBoth(job string) {
	s.t.Helper()
	s.await(job+" on both nodes", func() bool {
		on := map[string]bool{}
		for _, a := range s.allocs(job) {
			if a.ClientStatus == "running" && a.DesiredStatus == "run" {
				on[a.NodeID] = true
			}
		}
		return len(on) == 2
	})
}

// ends stops a job, and waits until its allocations have ended on both nodes.
func (s *lossSite) ends(job string) {
	s.t.Helper()
	_, _, err := s.api.Jobs().Deregister(job, false, nil)
	must.NoError(s.t, err)
	s.await("the end of "+job, func() bool {
		all := s.allocs(job)
		return len(all) > 0 && !slices.ContainsFunc(all, func(a *api.AllocationListStub) bool {
			return a.ClientStatus == "running" || a.ClientStatus == "pending"
		})
	})
	s.await("the end of all processes of tasks", func() bool { return len(s.ofTasks()) == 0 })
}

// The servers lose their nodes: by a purge, by the restore of a state from before the registration, and
// because their disks are wiped. The running clients register again and run jobs,
// with tokens and TLS and without. A client with tokens stayed silent for ever.
//
//race:skip its programs do not have the detector
func TestNode_registersAgain(t *testing.T) {
	t.Parallel()
	for name, secure := range map[string]bool{"tokens and TLS": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startLossSite(t, secure)
			ids := s.ready("the nodes")
			s.runs("purged")
			for _, id := range ids {
				_, _, err := s.api.Nodes().Purge(id, nil)
				must.NoError(t, err)
			}
			must.Eq(t, ids, s.ready("the purged nodes"))
			s.runOnBoth("purged")

			s.nodedrain("operator", "snapshot", "restore", "-yes", s.saved())
			must.Eq(t, ids, s.ready("the nodes after the restore"))
			if secure {
				s.await("the end of the tasks that the restored state does not have", func() bool { return len(s.ofTasks()) == 0 })
			}
			s.runs("restored")
			s.ends("restored")

			s.wipe()
			must.Eq(t, ids, s.ready("the nodes on a server without data"))
			s.runs("wiped")

			// Now the server loses its data while tasks run. They continue to run, and the node gets no
			// other tasks.
			tasks := len(s.ofTasks())
			s.wipe()
			must.Eq(t, ids, s.ready("the nodes with tasks of the lost cluster"))
			s.await("a driver that the client calls unhealthy", func() bool {
				nodes, _, err := s.api.Nodes().List(nil)
				return err == nil && slices.ContainsFunc(nodes, func(n *api.NodeListStub) bool {
					d := n.Drivers[s.kind]
					return d != nil && !d.Healthy && strings.Contains(d.HealthDescription, "another cluster")
				})
			})
			must.EqOp(t, tasks, len(s.ofTasks()))
			must.StrContains(t, s.real.logs.String(), "keeps its allocations running")

			for _, n := range []*realNode{s.real, s.second} {
				s.end(n)
				text, err := exec.Command(s.binary, "client", "-config", n.config, "-destroy").CombinedOutput()
				must.NoError(t, err, must.Sprint(string(text)))
			}
			must.SliceEmpty(t, s.ofTasks())
			s.begin(s.real)
			s.await("the new node", func() bool {
				nodes, _, err := s.api.Nodes().List(nil)
				return err == nil && slices.ContainsFunc(nodes, func(n *api.NodeListStub) bool {
					d := n.Drivers[s.kind]
					return d != nil && d.Healthy && !slices.Contains(ids, n.ID)
				})
			})
			for _, log := range []string{s.real.logs.String(), s.second.logs.String()} {
				lines := strings.Count(log, "a request to the servers failed")
				must.Between(t, 1, lines, 200, must.Sprint(fmt.Sprint(lines, " lines\n", log)))
			}
		})
	}
}
