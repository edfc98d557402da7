package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// scripted are test servers whose answers the test sets.
type scripted struct {
	mu         sync.Mutex
	ttl        time.Duration
	silent     bool  // leaves requests without an answer
	refuse     error // the answer to all requests, or nil
	unlike     error // the answer to registrations, or nil
	accepted   bool  // whether the node is registered
	registered []*cluster.Node
	heartbeats []time.Time
	changes    []api.Since
	answers    []client.Changes                        // the answers to the next requests for changes
	feed       chan client.Changes                     // the answers after those, or nil
	reported   map[cluster.AllocID]cluster.AllocReport // the newest
	changed    chan struct{}                           // capacity 1, or nil: the servers received something
	reports    int
	anonymous  bool
}

func (s *scripted) answer(ctx context.Context) error {
	if s.silent {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	return s.refuse
}

func (s *scripted) Register(ctx context.Context, n *cluster.Node) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answer(ctx); err != nil {
		return 0, err
	}
	if s.unlike != nil {
		return 0, s.unlike
	}
	s.accepted = true
	s.registered = append(s.registered, n)
	s.wake()
	return s.ttl, nil
}

func (s *scripted) Heartbeat(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answer(ctx); err != nil {
		return 0, err
	}
	if !s.accepted {
		return 0, presence.ErrNotRegistered
	}
	s.heartbeats = append(s.heartbeats, time.Now())
	return s.ttl, nil
}

func (s *scripted) Changes(ctx context.Context, from api.Since) (client.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, from)
	if err := s.answer(ctx); err != nil {
		return client.Changes{}, err
	}
	if len(s.answers) == 0 {
		s.mu.Unlock()
		defer s.mu.Lock()
		select {
		case <-ctx.Done():
			return client.Changes{}, ctx.Err()
		case w := <-s.feed:
			return w, nil
		}
	}
	w := s.answers[0]
	s.answers = s.answers[1:]
	return w, nil
}

func (s *scripted) Report(ctx context.Context, reports []cluster.AllocReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.answer(ctx); err != nil {
		return err
	}
	s.reports++
	for _, r := range reports {
		if s.reported != nil {
			s.reported[r.Alloc] = r
		}
	}
	s.wake()
	return nil
}

func (s *scripted) AcceptAnonymous(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.anonymous, s.answer(ctx)
}

// wake wakes a waiting test. The caller holds mu.
func (s *scripted) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // it is awake, or there is none
	}
}

func (s *scripted) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// pass lets time pass. The lock orders what the test has read before what the servers write later.
func (s *scripted) pass(d time.Duration) {
	s.set(func() {})
	time.Sleep(d)
	synctest.Wait()
}

// The client leaves out devices that the servers would refuse. The node registers with its other
// devices.
func TestContact_tooManyDevices(t *testing.T) {
	t.Parallel()
	c := newContact(&cluster.Node{ID: "n"}, new(scripted), quiet())
	var many []*cluster.DeviceGroup
	for i := range cluster.MaxDeviceKinds + 1 {
		g := toys("d1")
		g.Kind.Name = strconv.Itoa(i)
		many = append(many, g)
	}
	c.publish(client.NodeFacts{Devices: many[1:]})
	must.SliceLen(t, cluster.MaxDeviceKinds, c.newest().Devices)
	c.publish(client.NodeFacts{Drivers: map[string]*cluster.DriverInfo{"mock": {}}, Devices: many})
	must.SliceLen(t, cluster.MaxDeviceKinds, c.newest().Devices)
	must.MapLen(t, 1, c.newest().Drivers)
	must.StrContains(t, c.newest().Attributes[cluster.DeviceProblem], "a node has at most 256 kinds of devices")
	c = newContact(&cluster.Node{ID: "n", Resources: cluster.Resources{GPU: 1}}, new(scripted), quiet())
	c.publish(client.NodeFacts{Devices: many})
	must.SliceEmpty(t, c.newest().Devices)
}

// The attributes of the node state what is wrong with its devices, as long as it is wrong.
func TestContact_deviceProblems(t *testing.T) {
	t.Parallel()
	attributes := map[string]string{"os.name": "debian"}
	c := newContact(&cluster.Node{ID: "n", Attributes: attributes}, new(scripted), quiet())
	c.publish(client.NodeFacts{DeviceProblems: map[string]string{"nvidia-gpu": "one\ntwo", "toys": strings.Repeat("é", 4096)}})
	must.Eq(t, map[string]string{"nvidia-gpu": "one; two", "toys": strings.Repeat("é", maxProblem/2) + "…"}, cluster.DeviceProblems(c.newest().Attributes))
	c.publish(client.NodeFacts{DeviceProblems: map[string]string{"toys": "one"}})
	must.Eq(t, map[string]string{"os.name": "debian", "unique.device_problem.toys": "one"}, c.newest().Attributes)
	c.publish(client.NodeFacts{})
	must.Eq(t, map[string]string{"os.name": "debian"}, c.newest().Attributes)
	must.MapLen(t, 1, attributes)
}

// arrivals are test servers that record when a request arrives.
type arrivals struct {
	scripted
	at []time.Duration
}

func (a *arrivals) Register(ctx context.Context, n *cluster.Node) (time.Duration, error) {
	a.at = append(a.at, bootclock.Now())
	return a.scripted.Register(ctx, n)
}

func (a *arrivals) Heartbeat(ctx context.Context) (time.Duration, error) {
	a.at = append(a.at, bootclock.Now())
	return a.scripted.Heartbeat(ctx)
}

// The client counts stop_on_client_after from before the heartbeat reached the servers, on the boot
// clock. The servers count from a later time before they give a volume to another node. The same
// holds if the servers refuse a change of the node and answer its heartbeat.
func TestContact_countsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &arrivals{scripted: scripted{ttl: 30 * time.Second}}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		answered, before := 0, bootclock.Now()
		c.answered = func(contact guard.Contact) {
			must.Between(t, before, contact.Sent, s.at[len(s.at)-1])
			must.EqOp(t, 30*time.Second, contact.TTL)
			before, answered = contact.Sent, answered+1
		}
		stop := c.run(t, false)
		time.Sleep(31 * time.Second)
		s.set(func() { s.unlike = errors.New("no") })
		c.publish(client.NodeFacts{})
		time.Sleep(31 * time.Second)
		stop()
		must.EqOp(t, 8, answered)
		must.Greater(t, answered, len(s.at), must.Sprint("the servers have refused registrations"))
	})
}

// run registers the node and sends heartbeats, and with listens it also receives changes, until stop
// is called.
func (c *contact) run(t *testing.T, listens bool) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.keepAlive(ctx) })
	if listens {
		running.Go(func() { c.listen(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// The node registers, and sends a heartbeat in each third of the TTL. It registers again when the
// servers have lost its registration, and when its drivers have changed.
func TestContact_keepAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{ttl: 30 * time.Second}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		answered := 0
		c.answered = func(guard.Contact) { answered++ }
		defer c.run(t, false)()
		s.pass(31 * time.Second)
		must.SliceLen(t, 1, s.registered)
		must.SliceLen(t, 3, s.heartbeats)
		must.Eq(t, 4, answered)

		s.set(func() { s.accepted = false })
		s.pass(10 * time.Second)
		must.SliceLen(t, 2, s.registered)

		c.publish(client.NodeFacts{Drivers: map[string]*cluster.DriverInfo{"raw_exec": {Healthy: true}}, Devices: []*cluster.DeviceGroup{toys("d1")}})
		synctest.Wait()
		must.SliceLen(t, 3, s.registered)
		must.True(t, s.registered[2].Drivers["raw_exec"].Healthy)
		must.Eq(t, "d1", s.registered[2].Devices[0].Devices[0].ID)
		must.Nil(t, s.registered[0].Drivers)

		s.set(func() { s.silent = true })
		s.pass(time.Minute)
		before := answered
		c.publish(client.NodeFacts{})
		s.pass(time.Second)
		s.set(func() { s.silent = false })
		s.pass(11 * time.Second) // the attempt under way ends
		must.SliceLen(t, 4, s.registered, must.Sprint("a registration that failed is repeated"))
		must.Greater(t, before, answered)
	})
}

// Each request contains the cluster, the index and the history of the last answer. An answer without a cluster
// is ignored.
func TestContact_listen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{ttl: 30 * time.Second, answers: []client.Changes{{ClusterID: "c", Index: 7, History: "h7"}, {Index: 9}, {ClusterID: "c", Index: 8}}}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		var got []uint64
		c.receive = func(w client.Changes) { got = append(got, w.Index) }
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.listen(ctx) })
		synctest.Wait()
		must.SliceEmpty(t, s.changes, must.Sprint("a node that is not registered has no allocations"))
		running.Go(func() { c.keepAlive(ctx) })
		time.Sleep(time.Second)
		synctest.Wait()
		must.Eq(t, []uint64{7, 8}, got)
		must.Eq(t, []api.Since{{}, {ClusterID: "c", Index: 7, History: "h7"}, {ClusterID: "c", Index: 7, History: "h7"}, {ClusterID: "c", Index: 8}}, s.changes)
		cancel()
		running.Wait()
	})
}

// Bug: the node was purged while it was away. It registered again with what it had last published, and a
// drain was complete before the client had read that the servers do not list its allocations.
func TestContact_forgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{ttl: 30 * time.Second, answers: []client.Changes{{ClusterID: "c", Index: 7}}}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		all := cluster.NewUnlistedAllocs([]cluster.AllocID{"a"})
		c.forgotten = func() { time.AfterFunc(time.Millisecond, func() { c.publish(client.NodeFacts{Unlisted: all}) }) }
		defer c.run(t, true)()
		s.pass(time.Minute)
		s.set(func() { s.accepted = false })
		s.pass(11 * time.Second)
		must.Len(t, 2, s.registered)
		must.Eq(t, all, s.registered[1].Unlisted)
		must.Eq(t, []api.Since{{}, {ClusterID: "c", Index: 7}, {}}, s.changes, must.Sprint("the client reads all allocations"))

		c.forgotten = func() {} // a core that does not step
		s.set(func() { s.accepted = false })
		s.pass(12 * time.Second)
		must.Len(t, 3, s.registered)
	})
}

// While the node ignores the servers, the client requests all allocations twice a minute. The node may
// then join their cluster, and must not miss an allocation that it has ignored before.
func TestContact_foreign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := client.Changes{ClusterID: "other", Index: 7}
		s := &scripted{ttl: 30 * time.Second, answers: []client.Changes{one, one, one, one}}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		var answers atomic.Int32
		c.receive = func(client.Changes) { answers.Add(1) }
		c.foreign = func() bool { return answers.Load() > 0 && answers.Load() < 4 }
		defer c.run(t, true)()
		s.pass(65 * time.Second)
		must.Eq(t, []api.Since{{}, {}, {}}, s.changes)
		s.pass(time.Minute)
		must.Eq(t, []api.Since{{}, {}, {}, {}, {ClusterID: "other", Index: 7}}, s.changes)
	})
}

func TestContact_report(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		must.False(t, c.report(t.Context(), nil), must.Sprint("the servers have not accepted the client"))
		must.Zero(t, s.reports)
		time.AfterFunc(reportTimeout/2, func() { close(c.registered) })
		must.True(t, c.report(t.Context(), nil))
		s.refuse = errors.New("no leader")
		must.False(t, c.report(t.Context(), nil))
		must.Eq(t, 1, s.reports)
	})
}

func (s *scripted) OpenSession(context.Context) (*session.NodeEnd, error) {
	return nil, &session.Refused{Status: http.StatusNotImplemented}
}

// A request that keeps failing is logged at most once a minute, with how long it has failed, and once
// when it succeeds again. The text of the error has a new port each time, and two causes alternate.
// The client logged each cause once and was then silent for hours.
func TestFailures_onceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		f := newFailures(slog.New(slog.NewTextHandler(&text, nil)))
		lines := func() []string {
			all := strings.Split(strings.TrimSpace(text.String()), "\n")
			text.Reset()
			return all
		}
		for port := range 4 * 3600 {
			cause := []error{syscall.EPIPE, errors.New("tls: certificate required")}[port%2]
			f.failed(t.Context(), "registration", fmt.Errorf("write 127.0.0.1:%d: %w", port, cause))
			time.Sleep(250 * time.Millisecond)
		}
		failed := lines()
		must.SliceLen(t, 60, failed)
		must.StrContains(t, failed[0], "failing_for=0s")
		must.StrContains(t, failed[59], "failing_for=59m0s")
		must.StrContains(t, failed[59], "127.0.0.1:")
		must.True(t, f.succeeded("registration"))
		must.False(t, f.succeeded("registration"))
		must.StrContains(t, lines()[0], "failed_for=1h0m0s")
	})
}

// The first failure of a request is logged at once. The end of the client is no failure.
func TestFailures_eachRequestByItself(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	f := newFailures(slog.New(slog.NewTextHandler(&text, nil)))
	f.failed(t.Context(), "heartbeat", errors.New("first"))
	f.failed(t.Context(), "session", errors.New("second"))
	ended, end := context.WithCancel(t.Context())
	end()
	f.failed(ended, "changes", ended.Err())
	must.EqOp(t, 2, strings.Count(text.String(), "\n"))
}

// A plugin may invent new failures for ever.
func TestFailureLog_bounded(t *testing.T) {
	t.Parallel()
	var failures failureLog
	for i := range 10 * maxLogged {
		must.True(t, failures.isNew(fmt.Errorf("failure %d", i)))
	}
	must.LessEq(t, maxLogged, len(failures.logged))
	must.False(t, failures.isNew(fmt.Errorf("failure %d", 10*maxLogged-1)))
	failures.over()
	must.True(t, failures.isNew(fmt.Errorf("failure %d", 10*maxLogged-1)))
}

// The servers have lost the registration of the node, and refuse another one until an operator gives it a
// token. The client retries with backoff for hours, logs once a minute, and registers. Meanwhile it
// requests changes no faster than it retries.
func TestContact_refusedForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		s := &counted{scripted: scripted{ttl: 30 * time.Second}}
		c := newContact(&cluster.Node{ID: "n"}, s, slog.New(slog.NewTextHandler(&text, nil)))
		defer c.run(t, true)()
		s.pass(time.Minute)
		before := s.registrations
		text.Reset()
		s.set(func() { s.accepted, s.unlike = false, errors.New("403 (ACL token not found)") })
		s.pass(3 * time.Hour)
		// The longest wait is a third of the TTL.
		must.Between(t, 3*60*6, s.registrations-before, 3*60*13)
		must.Between(t, 150, strings.Count(text.String(), "request=registration "), 3*60)
		must.EqOp(t, 1, strings.Count(text.String(), "request=heartbeat"), must.Sprint("the node is not registered and sends no heartbeats"))
		must.StrContains(t, text.String(), "failing_for=2h")
		text.Reset()
		s.set(func() { s.unlike = nil })
		s.pass(10 * time.Second)
		must.SliceLen(t, 2, s.registered)
		must.StrContains(t, text.String(), "the node is registered")
		text.Reset()
		s.pass(time.Hour)
		must.SliceLen(t, 2, s.registered)
		must.Eq(t, "", text.String())
	})
}

// counted are test servers that count registrations, also refused ones.
type counted struct {
	scripted
	registrations int
}

func (c *counted) Register(ctx context.Context, n *cluster.Node) (time.Duration, error) {
	c.set(func() { c.registrations++ })
	return c.scripted.Register(ctx, n)
}

// After a restore all requests for changes fail at the same moment, until the node has registered
// again. Then the client reads its allocations at once.
func TestContact_changesAfterTheRegistration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &refusingChanges{scripted: scripted{ttl: 3 * time.Minute, feed: make(chan client.Changes)}}
		c := newContact(&cluster.Node{ID: "n"}, s, quiet())
		defer c.run(t, true)()
		time.Sleep(time.Second)
		s.set(func() { s.accepted = false })
		s.feed <- client.Changes{ClusterID: "c", Index: 5}
		s.pass(55 * time.Second)
		requests := len(s.changes)
		must.Between(t, 6, requests, 20)
		s.pass(5 * time.Second) // the next heartbeat
		must.SliceLen(t, 2, s.registered)
		must.Greater(t, requests, len(s.changes))
		requests = len(s.changes)
		s.pass(time.Minute)
		must.SliceLen(t, requests, s.changes, must.Sprint("the last request waits for a change"))
	})
}

// refusingChanges are test servers that refuse requests for changes of an unknown node.
type refusingChanges struct{ scripted }

func (r *refusingChanges) Changes(ctx context.Context, from api.Since) (client.Changes, error) {
	r.mu.Lock()
	accepted := r.accepted
	if !accepted {
		r.changes = append(r.changes, from)
	}
	r.mu.Unlock()
	if !accepted {
		return client.Changes{}, errors.New("403 (ACL token not found)")
	}
	return r.scripted.Changes(ctx, from)
}
