package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

// startQuick starts a site without nodes. Its server runs in this process, and expects heartbeats so often
// that a client that reaches it renews a deadline of seconds. With a grace of patience no allocation is lost.
func startQuick(t *testing.T, grace time.Duration) *site {
	t.Helper()
	return startQuickAt(t, "127.0.0.1", grace)
}

// startQuickAt is startQuick with the address of an interface, on which the server's API listens. It has TLS
// where clients demand that.
func startQuickAt(t *testing.T, host string, grace time.Duration) *site {
	t.Helper()
	needMachine(t)
	s := &site{servers: &servers{t: t}, binary: filepath.Join(t.TempDir(), "nodedrain"), dir: t.TempDir()}
	programs.Build(t, "../../cmd/nodedrain", s.binary)
	t.Cleanup(s.clean)
	s.journal = filepath.Join(s.dir, "journal")
	must.NoError(t, os.Mkdir(s.journal, 0o700))
	secret, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(s.dir, "tokens"), []byte(token.Line()+"\n"), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(s.dir, "token"), []byte(secret.Reveal()+"\n"), 0o600))
	tokens, err := access.Open(filepath.Join(s.dir, "tokens"), nil)
	must.NoError(t, err)
	config, scheme := agent.Config{
		HTTPAddr: host + ":0", ServerAddr: "127.0.0.1:0", BootstrapExpect: 1, Access: tokens,
		Heartbeats: heartbeat.Options{MinTTL: 300 * time.Millisecond, Grace: grace},
	}, "http://"
	if host != "127.0.0.1" {
		ca, name := newAuthority(t, "the cluster's authority"), agent.ServerName("global")
		ca.sign("server", name)
		certs, err := agent.OpenCerts(agent.CertConfig{Certificate: ca.file("server.pem"), Key: ca.file("server-key.pem")})
		must.NoError(t, err)
		config.HTTPTLS, scheme = certs.Public(), "https://"
		s.config.TLSConfig = &api.TLSConfig{CACert: ca.file("ca.pem"), TLSServerName: name}
		s.trust = fmt.Sprintf("  ca_file = %q\n  server_name = %q\n", ca.file("ca.pem"), name)
	}
	server, err := agent.New(config)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, server.Stop()) })
	must.NoError(t, server.Ready(t.Context()))
	s.address, s.config.SecretID = scheme+server.HTTPAddr(), secret.Reveal()
	s.config.Address = s.address
	s.api, err = api.NewClient(&s.config)
	must.NoError(t, err)
	t.Cleanup(func() { // before the end of the server
		if t.Failed() {
			s.logState()
		}
	})
	return s
}

// A client is killed and does not come back. The watchdog stops its tasks: one obeys its kill signal, and
// one ignores it. Nothing of them is left, and the next client reports how they ended.
//
//race:skip its programs do not have the detector
func TestNode_theWatchdogStopsWhatADeadClientLeaves(t *testing.T) {
	t.Parallel()
	s := startQuick(t, patience)
	n := s.newNode("n1", true, "")
	s.begin(n)
	alloc := placeLeashed(s)

	s.crash(n)
	s.await("the end of the tasks", func() bool { return len(s.ofTasks()) == 0 })
	s.await("the end of the watchdog", func() bool { return len(s.watchdogs()) == 0 })
	must.SliceLen(t, 1, s.noted(alloc, "obeys", "term"))
	must.SliceLen(t, 1, s.noted(alloc, "obeys", "end"), must.Sprint("it had its kill timeout"))
	must.SliceLen(t, 1, s.noted(alloc, "deaf", "term"))

	_, _, err := s.api.Jobs().Deregister("web", false, nil) // no replacement
	must.NoError(t, err)
	s.begin(n)
	awaitStoppedByWatchdog(s, alloc, map[string]string{"obeys": "Exit Code: 7", "deaf": "Exit Code: 137, Signal: 9"})
	must.Eq(t, 1, strings.Count(n.logs.String(), "the watchdog has stopped an allocation"))
	s.end(n)
}

// A client is frozen while its watchdog lives. The watchdog sends no signal, because a client that lives
// stops its tasks itself. It kills them when a client should have stopped them. The client continues, does
// not restart the tasks, and reports how they ended. Bug: the tasks ran as long as the client was frozen,
// and the servers confirmed their end.
//
//race:skip its programs do not have the detector
func TestNode_theWatchdogKillsTheTasksOfAFrozenClient(t *testing.T) {
	t.Parallel()
	s := startQuick(t, patience)
	n := s.newNode("n1", true, "")
	s.begin(n)
	alloc := placeLeashed(s)
	must.NoError(t, n.client.Process.Signal(syscall.SIGSTOP))
	s.await("the end of the tasks", func() bool { return s.copies(alloc, "obeys")+s.copies(alloc, "deaf") == 0 })
	must.SliceLen(t, 1, s.watchdogs())
	must.SliceEmpty(t, s.noted(alloc, "obeys", "term"))
	must.SliceEmpty(t, s.noted(alloc, "deaf", "term"))

	must.NoError(t, n.client.Process.Signal(syscall.SIGCONT))
	awaitStoppedByWatchdog(s, alloc, map[string]string{"obeys": "Exit Code: 137, Signal: 9", "deaf": "Exit Code: 137, Signal: 9"})
	must.SliceLen(t, 1, s.noted(alloc, "obeys", "start"))
	must.SliceLen(t, 1, s.noted(alloc, "deaf", "start"))
	s.stopJob("web") // and its replacement
	s.end(n)
}

// placeLeashed registers a service whose two tasks must stop 8 seconds after the last contact with servers,
// and returns its allocation when it runs beside a watchdog.
func placeLeashed(s *site) (alloc string) {
	s.t.Helper()
	id, kind, after, short := "web", "service", 8*time.Second, 2*time.Second
	group := api.NewTaskGroup("g", 1).AddTask(rawExec("obeys", s.script(obeys))).AddTask(rawExec("deaf", s.script(deaf)))
	group.Tasks[1].KillTimeout = &short
	group.Disconnect = &api.DisconnectStrategy{StopOnClientAfter: &after}
	_, _, err := s.api.Jobs().Register((&api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}).AddTaskGroup(group), nil)
	must.NoError(s.t, err)
	alloc = s.running("web", 1)[0].ID
	must.SliceLen(s.t, 1, s.watchdogs())
	must.SliceEmpty(s.t, s.noted(alloc, "obeys", "term"))
	return alloc
}

// awaitStoppedByWatchdog waits until a client reports the end of an allocation, and compares how its tasks
// have ended.
func awaitStoppedByWatchdog(s *site, alloc string, exits map[string]string) {
	s.t.Helper()
	s.await("the report of the client", func() bool {
		a, _, err := s.api.Allocations().Info(alloc, nil)
		return err == nil && a.ClientStatus == "complete"
	})
	a, _, err := s.api.Allocations().Info(alloc, nil)
	must.NoError(s.t, err)
	for task, exit := range exits {
		events := ""
		for _, e := range a.TaskStates[task].Events {
			events += e.Type + ": " + e.DisplayMessage + "\n"
		}
		must.StrContains(s.t, events, "Watchdog: stopped by the watchdog: no client has reached a server for 8s\n")
		must.StrContains(s.t, events, "Terminated: "+exit+"\n")
	}
}

func (s *site) watchdogs() (found []int) {
	for _, pid := range pids(s.t) {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // the process may have ended
		if words := strings.Split(string(line), "\x00"); len(words) > 1 && words[1] == "nodedrain-watchdog" && strings.Contains(string(line), s.dir) {
			found = append(found, pid)
		}
	}
	return found
}
