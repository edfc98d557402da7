package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/frozen"
)

// servers are the server processes of one cluster.
type servers struct {
	t       testing.TB
	all     []*serverProcess
	cutFile string
}

// serverProcess is one server. Tests kill it and start it again.
type serverProcess struct {
	childConfig
	// binary is the program that runs: a test binary of this package, of some commit.
	binary  string
	api     *api.Client
	command *exec.Cmd // the running process, or nil
	logs    *os.File
	// began is the length of the log at the last start of the server.
	began int64
}

// peerSecret is the secret of clusters without certificates.
const peerSecret = "the peer secret of the clusters of these tests"

// startServers begins a cluster of three, of this build, whose servers have a peer secret.
func startServers(t testing.TB, ttl time.Duration) *servers {
	t.Helper()
	return startBuild(t, os.Args[0], childConfig{TTL: ttl, Secret: peerSecret})
}

// startBuild begins a cluster of three of a build. common is what the servers have in common.
func startBuild(t testing.TB, binary string, common childConfig) *servers {
	t.Helper()
	dir := t.TempDir()
	s := &servers{t: t, cutFile: filepath.Join(dir, "cut")}
	ports := freePorts(t, 6)
	var join []string
	for i := range 3 {
		join = append(join, ports[2*i])
	}
	for i := range 3 {
		p := &serverProcess{childConfig: common, binary: binary}
		p.Name, p.DataDir = fmt.Sprintf("server-%d", i+1), filepath.Join(dir, fmt.Sprint(i+1))
		p.ServerAddr, p.HTTPAddr, p.Join, p.CutFile = ports[2*i], ports[2*i+1], join, s.cutFile
		client, err := api.NewClient(&api.Config{Address: "http://" + p.HTTPAddr})
		must.NoError(t, err)
		p.api = client
		p.logs, err = os.Create(filepath.Join(dir, p.Name+".log"))
		must.NoError(t, err)
		s.all = append(s.all, p)
		s.start(p)
	}
	t.Cleanup(s.stop)
	s.leader()
	return s
}

// freePorts are addresses at which no process listens, also while a server is down: systems choose
// the ports of connections and of port 0 from 32768 on.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	const least, most = 12_000, 32_000
	var addresses []string
	for tries := 0; len(addresses) < n; tries++ {
		must.Less(t, 1000, tries, must.Sprint("ports that are in use"))
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", least+rand.IntN(most-least)))
		if err != nil {
			continue // a process listens there
		}
		defer func() { _ = l.Close() }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

func (s *servers) start(p *serverProcess) {
	s.t.Helper()
	config, err := json.Marshal(p.childConfig)
	must.NoError(s.t, err)
	p.command = exec.Command(p.binary, "-test.run=^$")
	logged, err := p.logs.Stat()
	must.NoError(s.t, err)
	p.began = logged.Size()
	p.command.Env = append(os.Environ(), childVariable+"="+string(config))
	p.command.Stderr = p.logs
	must.NoError(s.t, p.command.Start())
}

// kill ends a server as a power cut does.
func (s *servers) kill(p *serverProcess) {
	s.t.Helper()
	must.NoError(s.t, p.command.Process.Kill())
	_ = p.command.Wait() // the error is only that it was killed
	p.command = nil
}

// freeze pauses a server: its connections stay open, and it does not answer.
func (s *servers) freeze(p *serverProcess, while func()) {
	s.t.Helper()
	frozen.Stop(s.t, p.command.Process.Pid)
	while()
	must.NoError(s.t, p.command.Process.Signal(syscall.SIGCONT))
}

// stop collects the values of enums that the servers have, ends all servers, and prints their logs if the test has failed.
func (s *servers) stop() {
	for _, p := range s.all {
		if p.command != nil {
			collectValues(p.api)
			s.kill(p)
		}
		if s.t.Failed() {
			if text, err := os.ReadFile(p.logs.Name()); err == nil {
				s.t.Logf("%s logged:\n%s", p.Name, text)
			}
		}
		_ = p.logs.Close()
	}
}

// cut cuts one server off from the others; nil mends it.
func (s *servers) cut(p *serverProcess) {
	s.t.Helper()
	var address string
	if p != nil {
		address = p.ServerAddr
	}
	must.NoError(s.t, os.WriteFile(s.cutFile, []byte(address), 0o600))
}

// leader waits for a leader that most agree on, and returns it.
func (s *servers) leader() *serverProcess {
	s.t.Helper()
	var found *serverProcess
	s.await("a leader", func() bool {
		votes := map[string]int{}
		for _, p := range s.all {
			if p.command == nil {
				continue
			}
			if address, err := p.api.Status().Leader(); err == nil {
				votes[address]++
			}
		}
		for _, p := range s.all {
			if p.command != nil && votes[p.ServerAddr] >= 2 {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// patience is how long anything may take that has to happen: the machine may be busy.
const patience = 90 * time.Second

// await waits until a condition holds.
func (s *servers) await(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			s.t.Fatalf("waited for %s", what)
		}
		s.pause(50 * time.Millisecond)
	}
}

// pause waits, unless the test ends. Other processes work meanwhile, and no event reports their
// progress.
func (s *servers) pause(d time.Duration) {
	select {
	case <-s.t.Context().Done():
	case <-time.After(d):
	}
}

// urls are the addresses of the APIs.
func (s *servers) urls() []string {
	var urls []string
	for _, p := range s.all {
		urls = append(urls, "http://"+p.HTTPAddr)
	}
	return urls
}

// do makes a request of one server after the other until one has answered it.
func (s *servers) do(ctx context.Context, request func(*api.Client) error) error {
	for i := 0; ; i++ {
		p := s.all[i%len(s.all)]
		err := request(p.api)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if response, is := err.(api.UnexpectedResponseError); is && response.HasStatusCode() && response.StatusCode() < 500 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// get reads a path of one server that the client package does not have.
func (p *serverProcess) get(path string) (body string, header http.Header, err error) {
	answer, err := http.Get("http://" + p.HTTPAddr + path)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, data)
	}
	return string(data), answer.Header, err
}

// violations is how often the server has found a guarantee broken, or the error of reading that.
func (p *serverProcess) violations() (lines []string, err error) {
	body, _, err := p.get("/v1/metrics?format=prometheus")
	if err != nil {
		return nil, err
	}
	found := false
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") || !strings.Contains(line, "violation") {
			continue
		}
		found = true
		if !strings.HasSuffix(strings.TrimSpace(line), " 0") {
			lines = append(lines, line)
		}
	}
	if !found {
		return nil, fmt.Errorf("no series counts violations:\n%s", body)
	}
	return lines, nil
}
