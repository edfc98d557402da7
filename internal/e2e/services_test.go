package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// webVariable is set in the environment of a task that serves HTTP on an address.
const webVariable = "NODEDRAIN_E2E_WEB"

// web answers each request with the process's version. SIGTERM ends it at once, with the requests that it has.
func web(address string) error {
	version := os.Getenv("VERSION")
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, version) // the caller may be gone
	}))
}

// The load of the tests of services. The delay between the removal from the catalogue and the signal is long, so that
// a busy machine delays no follower that much.
const (
	webCount      = 10
	webNodes      = 5
	webDelay      = 5 * time.Second
	webRequests   = 500 // a second
	webAtOnce     = 200
	webPortsOfOne = 40
)

// webSite is three servers and five clients, with a service on all of them.
type webSite struct {
	*site
	peers []*exec.Cmd
}

func startWebSite(t *testing.T) *webSite {
	t.Helper()
	needMachine(t)
	s := &webSite{site: &site{servers: &servers{t: t}, binary: filepath.Join(t.TempDir(), "nodedrain"), dir: t.TempDir()}}
	programs.Build(t, "../../cmd/nodedrain", s.binary)
	t.Cleanup(func() {
		s.clean()
		for _, peer := range s.peers {
			_ = peer.Process.Kill()
			_ = peer.Wait()
		}
	})
	secret, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	file := func(name, text string) string {
		path := filepath.Join(s.dir, name)
		must.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		return path
	}
	tokens, peerFile := file("tokens", token.Line()), file("peers", strings.Repeat("0123456789abcdef", 4))
	file("token", secret.Reveal())
	ports := freePorts(t, 6)
	for i := range 3 {
		args := []string{
			"server", "-name", fmt.Sprint("server-", i+1), "-data-dir", filepath.Join(s.dir, fmt.Sprint("server-", i+1)), "-bootstrap-expect", "3",
			"-http", ports[i], "-bind", ports[3+i], "-peer-secret-file", peerFile, "-tokens", tokens, "-log-level", "error",
		}
		for k := range 3 {
			if k != i {
				args = append(args, "-join", ports[3+k])
			}
		}
		peer := exec.Command(s.binary, args...)
		peer.Stderr = os.Stderr
		must.NoError(t, peer.Start())
		s.peers = append(s.peers, peer)
	}
	s.address, s.config.SecretID = "http://"+ports[0], secret.Reveal()
	s.config.Address = s.address
	s.api, err = api.NewClient(&s.config)
	must.NoError(t, err)
	s.await("a leader", func() bool {
		leader, err := s.api.Status().Leader()
		return err == nil && leader != ""
	})
	first := freeRange(t, webNodes*webPortsOfOne)
	for i := range webNodes {
		least := first + i*webPortsOfOne
		s.begin(s.newNode(fmt.Sprint("n", i+1), true, fmt.Sprintf("network_interface = \"lo\"\nmin_dynamic_port = %d\nmax_dynamic_port = %d\n", least, least+webPortsOfOne-1)))
	}
	s.await("the nodes", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		return err == nil && len(nodes) == webNodes && !slices.ContainsFunc(nodes, func(n *api.NodeListStub) bool {
			return n.Drivers["raw_exec"] == nil || !n.Drivers["raw_exec"].Healthy
		})
	})
	return s
}

// freeRange is the first of so many ports in a row at which no process listens.
func freeRange(t *testing.T, count int) int {
	t.Helper()
	for first := 12_000; first+count < 32_000; first += count {
		if rangeIsFree(first, count) {
			return first
		}
	}
	t.Fatal("no free range of ports")
	return 0
}

func rangeIsFree(first, count int) bool {
	for port := first; port < first+count; port++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// registerWeb registers a version of the service.
func (s *webSite) registerWeb(version string) { s.register(s.webJob(version, webCount), version) }

// webJob is a version of the service with a number of instances.
func (s *webSite) webJob(version string, count int) *api.Job {
	s.t.Helper()
	program, err := os.Executable()
	must.NoError(s.t, err)
	job := s.service("web", count)
	group := job.TaskGroups[0]
	two, delay := 2, webDelay
	group.Migrate.MaxParallel = &two
	group.Update = &api.UpdateStrategy{MaxParallel: &two, MinHealthyTime: group.Migrate.MinHealthyTime, HealthyDeadline: group.Migrate.HealthyDeadline}
	group.ShutdownDelay = &delay
	group.Networks = []*api.NetworkResource{{Mode: "host", DynamicPorts: []api.Port{{Label: "http"}}}}
	group.Services = []*api.Service{{Name: "web", Provider: "nomad", PortLabel: "http", Checks: []api.ServiceCheck{{
		Name: "up", Type: "http", Path: "/", Interval: time.Second, Timeout: 5 * time.Second,
	}}}}
	group.Tasks = group.Tasks[:1]
	task := group.Tasks[0]
	task.Name, task.Config = "web", map[string]any{"command": program}
	task.Env = map[string]string{webVariable: "${NOMAD_ADDR_http}", "VERSION": version}
	return job
}

// register registers a version of the service, and waits for its instances.
func (s *webSite) register(job *api.Job, version string) {
	s.t.Helper()
	s.await("the registration of version "+version, func() bool { // below the cluster version of services there is a warning
		answer, _, err := s.api.Jobs().Register(job, nil)
		return err == nil && answer.Warnings == ""
	})
	s.await("the instances of version "+version, func() bool {
		instances, _, err := s.api.Services().Get("web", nil)
		return err == nil && len(instances) == *job.TaskGroups[0].Count && !slices.ContainsFunc(instances, func(i *api.ServiceRegistration) bool {
			answer, err := http.Get("http://" + address(i))
			if err != nil {
				return true
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			return string(text) != version
		})
	})
}

func address(i *api.ServiceRegistration) string {
	return net.JoinHostPort(i.Address, strconv.Itoa(i.Port))
}

// drainAndReturn drains a node, and makes it eligible again.
func (s *webSite) drainAndReturn(n *realNode) {
	s.t.Helper()
	id := nodeOf(s.site, n.name).ID
	_, err := s.api.Nodes().UpdateDrainOpts(id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: 10 * time.Minute}}, nil)
	must.NoError(s.t, err)
	s.await("the end of the drain of "+n.name, func() bool {
		node, _, err := s.api.Nodes().Info(id, nil)
		return err == nil && node.DrainStrategy == nil
	})
	_, err = s.api.Nodes().ToggleEligibility(id, true, nil)
	must.NoError(s.t, err)
}

// balancer sends requests to the instances of the service, in turn. It follows the catalogue.
type balancer struct {
	api *api.Client
	// instances is how many instances there are before the first request, and rate how many requests it sends in a second.
	instances, rate int
	// late is how long it ignores the removal of an instance.
	late time.Duration

	mu sync.Mutex
	// addresses are those of the newest answer. until are the times up to which it uses others. Guarded by mu.
	addresses []string
	until     map[string]time.Time
	next      int
	sent      int
	failures  []error
	// began and ended are the times of the first and the last failure.
	began, ended time.Time
	longest      time.Duration
	backwards    int
}

// follow takes over each answer of the catalogue until the context ends.
func (b *balancer) follow(ctx context.Context) {
	for index := uint64(0); ctx.Err() == nil; {
		instances, meta, err := b.api.Services().Get("web", (&api.QueryOptions{WaitIndex: index, WaitTime: time.Minute}).WithContext(ctx))
		if err != nil {
			continue // a leader changes, or the test ends
		}
		var addresses []string
		for _, i := range instances {
			addresses = append(addresses, address(i))
		}
		b.mu.Lock()
		for _, one := range b.addresses {
			if !slices.Contains(addresses, one) {
				b.until[one] = time.Now().Add(b.late)
			}
		}
		if meta.LastIndex < index {
			b.backwards++
		}
		index, b.addresses = meta.LastIndex, addresses
		b.mu.Unlock()
	}
}

// choose returns the address for the next request, or nothing while there is none.
func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.addresses)
	for one, until := range b.until {
		if time.Now().Before(until) {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	b.next++
	return all[b.next%len(all)]
}

// request sends one request, and counts it.
func (b *balancer) request(client *http.Client) {
	began, to := time.Now(), b.choose()
	err := errors.New("there is no instance")
	if to != "" {
		var answer *http.Response
		if answer, err = client.Get("http://" + to); err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent++
	b.longest = max(b.longest, time.Since(began))
	if err != nil {
		if b.ended = time.Now(); b.began.IsZero() {
			b.began = began
		}
		b.failures = append(b.failures, fmt.Errorf("%s: %w", time.Now().UTC().Format(time.TimeOnly), err))
	}
}

// run sends requests while something happens, and returns when all have been answered.
func (b *balancer) run(t *testing.T, while func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var group sync.WaitGroup
	group.Go(func() { b.follow(ctx) })
	for begun := false; !begun; {
		b.mu.Lock()
		begun = len(b.addresses) == b.instances
		b.mu.Unlock()
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: webAtOnce}, Timeout: 30 * time.Second}
	slots := make(chan struct{}, webAtOnce)
	group.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(b.rate))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case slots <- struct{}{}:
				group.Go(func() {
					b.request(client)
					<-slots
				})
			default: // the machine is busy
			}
		}
	})
	while()
	end()
	group.Wait()
	must.Zero(t, b.backwards, must.Sprint("an index that goes back"))
	t.Logf("%d requests, %d failures, the longest took %s", b.sent, len(b.failures), b.longest)
}

// No request of a follower of the catalogue fails while every node is drained in turn and comes back, and while a new
// version replaces all instances: an instance is removed before its shutdown delay begins. A follower that uses
// instances two seconds longer than their shutdown delay has failures.
//
//race:skip its programs do not have the detector
func TestServices_noRequestFails(t *testing.T) {
	t.Parallel()
	if os.Getenv(killsVariable) == "" {
		t.Skip("a load of some minutes, for which " + killsVariable + " is set; httpapi's tests judge the order of each removal")
	}
	s := startWebSite(t)
	s.registerWeb("1")
	drained := s.nodes[:min(webNodes, kills(t))]
	b := &balancer{api: s.api, instances: webCount, rate: webRequests, until: map[string]time.Time{}}
	b.run(t, func() {
		for _, n := range drained {
			s.drainAndReturn(n)
		}
		s.registerWeb("2")
	})
	must.SliceEmpty(t, b.failures)
	must.Positive(t, b.sent)

	late := &balancer{api: s.api, instances: webCount, rate: webRequests, until: map[string]time.Time{}, late: webDelay + 2*time.Second}
	late.run(t, func() {
		for _, n := range s.nodes[:2] {
			s.drainAndReturn(n)
		}
		s.await("failures", func() bool {
			late.mu.Lock()
			defer late.mu.Unlock()
			return len(late.failures) > 0
		})
	})
	must.ErrorIs(t, errors.Join(late.failures...), syscall.ECONNREFUSED)
	s.stopJob("web")
}

// No request to a service of one fails while its node is drained ten times, with a max_surge of one. Without it there is a
// gap at each drain.
//
//race:skip its programs do not have the detector
func TestServices_oneInstance(t *testing.T) {
	t.Parallel()
	if os.Getenv(killsVariable) == "" {
		t.Skip("a load of some minutes, for which " + killsVariable + " is set; the simulator judges each mark")
	}
	s := startWebSite(t)
	job := s.webJob("1", 1)
	job.TaskGroups[0].Meta = map[string]string{"nodedrain.max_surge": "1"}
	s.register(job, "1")
	b := &balancer{api: s.api, instances: 1, rate: oneRequests, until: map[string]time.Time{}}
	b.run(t, func() {
		for range min(oneDrains, kills(t)) {
			at := s.nodeOfInstance()
			s.drainAndReturn(at)
			must.NotEq(t, at.name, s.nodeOfInstance().name)
		}
	})
	must.SliceEmpty(t, b.failures)
	must.Positive(t, b.sent)

	job.TaskGroups[0].Meta = nil
	s.register(job, "1")
	gap := &balancer{api: s.api, instances: 1, rate: oneRequests, until: map[string]time.Time{}}
	gap.run(t, func() { s.drainAndReturn(s.nodeOfInstance()) })
	must.SliceNotEmpty(t, gap.failures)
	t.Logf("without max_surge, requests failed for %s", gap.ended.Sub(gap.began).Round(time.Millisecond))
	s.stopJob("web")
}

// The load of a service of one instance.
const (
	oneRequests = 200 // a second
	oneDrains   = 10
)

// nodeOfInstance is the node of the only instance of the service.
func (s *webSite) nodeOfInstance() *realNode {
	s.t.Helper()
	var found *realNode
	s.await("one instance", func() bool {
		instances, _, err := s.api.Services().Get("web", nil)
		if err != nil || len(instances) != 1 {
			return false
		}
		for _, n := range s.nodes {
			if node := nodeOf(s.site, n.name); node != nil && node.ID == instances[0].NodeID {
				found = n
			}
		}
		return found != nil
	})
	return found
}
