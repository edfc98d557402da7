package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// changesWait is how long the servers wait for a change before they answer without one.
// changesTimeout is the timeout of the request: the servers wait up to a sixteenth longer, to
// spread the requests.
const (
	changesWait    = 30 * time.Second
	changesTimeout = changesWait + changesWait/16 + 10*time.Second
)

// httpServers are servers with the HTTP API. After a failure the next request goes to the next
// server.
type httpServers struct {
	all []httpServer
	// at is the index of the server for the next request, modulo their number.
	at atomic.Uint64
	// sessionAt is the index of the server for the next session, modulo their number.
	sessionAt atomic.Uint64
	// registeredIn is the cluster version of the last registration. The servers dropped fields of
	// newer versions.
	registeredIn atomic.Uint64
	shown        shownState
	// token registers an unknown node. Only Register uses it, in one goroutine.
	token machineToken
}

var _ Servers = (*httpServers)(nil)

// httpServer is one server, with a client for each of two kinds of callers.
type httpServer struct {
	// config has no token.
	config api.Config
	// member has the secret of the node; stranger has none.
	member, stranger *api.Client
	self             api.NodeSide
	close            func()
}

// shownState is the newest state that the answers to writes have shown since the last request for changes
// began. If the servers have lost this state, what the client has written may be lost too.
type shownState struct {
	mu     sync.Mutex
	newest wire.StateID // guarded by mu
}

func (s *shownState) note(id wire.StateID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.Index > s.newest.Index {
		s.newest = id
	}
}

// take returns the state for a request. The answer shows that the servers have it, or is complete. After a request
// without an answer the caller notes it again.
func (s *shownState) take() wire.StateID {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.newest
	s.newest = wire.StateID{}
	return id
}

// newHTTPServers sends no request. process is the id of this process.
func newHTTPServers(c config.Servers, self identity, process string) (*httpServers, error) {
	s := &httpServers{token: machineToken{file: c.TokenFile, last: c.Token}}
	for _, address := range c.Addresses {
		one := httpServer{config: api.Config{Address: address, Process: process, TLS: api.TLS{
			CACert: c.CAFile, ClientCert: c.CertFile, ClientKey: c.KeyFile, ServerName: c.ServerName,
		}}}
		var err error
		if one.member, err = one.client(self.Secret); err == nil {
			one.stranger, err = one.client("")
		}
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", address, err)
		}
		one.self = one.member.NodeSide(self.ID)
		one.close = func() {
			one.member.Close()
			one.stranger.Close()
		}
		s.all = append(s.all, one)
	}
	return s, nil
}

func (s httpServer) client(token string) (*api.Client, error) {
	c := s.config
	c.Token = token
	return api.New(c)
}

// close closes idle connections.
func (s *httpServers) close() error {
	for _, one := range s.all {
		one.close()
	}
	return nil
}

// send sends a request to a server. If it failed, the next request goes to the next server.
func (s *httpServers) send(request func(httpServer) error) error {
	at := s.at.Load()
	err := request(s.all[at%uint64(len(s.all))])
	if err != nil && !api.Refused(err) {
		s.at.CompareAndSwap(at, at+1)
	}
	return err
}

// Register implements [Servers]. A known node registers with its secret. An unknown node registers
// with the token.
func (s *httpServers) Register(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	err = s.send(func(one httpServer) error {
		answer, err := one.member.Register(ctx, n)
		if forbidden(err) {
			answer, err = s.token.register(ctx, one, n)
		}
		if err == nil {
			ttl = answer.HeartbeatTTL
			s.shown.note(answer.State)
			s.registeredIn.Store(uint64(answer.ClusterVersion))
		}
		return err
	})
	return ttl, err
}

// errOlderVersion means that the servers have the node, but may lack fields of it.
var errOlderVersion = errors.New("the node registered in an older cluster version")

// Heartbeat implements [Servers]. If the cluster version has increased since the registration, the
// node counts as not registered.
func (s *httpServers) Heartbeat(ctx context.Context) (ttl time.Duration, err error) {
	var version cluster.Version
	err = s.send(func(one httpServer) error {
		answer, err := one.self.Heartbeat(ctx)
		ttl, version = answer.HeartbeatTTL, answer.ClusterVersion
		s.shown.note(answer.State)
		return err
	})
	if before := cluster.Version(s.registeredIn.Load()); err == nil && version > before {
		return ttl, fmt.Errorf("%w: %w: the cluster has version %d, and the registration version %d", presence.ErrNotRegistered, errOlderVersion, version, before)
	}
	if api.UnknownNode(err) {
		err = fmt.Errorf("%w: %w", presence.ErrNotRegistered, err)
	}
	return ttl, err
}

// Changes implements [Servers].
func (s *httpServers) Changes(ctx context.Context, since api.Since) (w client.Changes, err error) {
	ctx, cancel := context.WithTimeout(ctx, changesTimeout)
	defer cancel()
	since.Shown = s.shown.take()
	err = s.send(func(one httpServer) error {
		c, err := one.self.Changes(ctx, since, changesWait)
		w = changesOf(c)
		w.Version = cluster.Version(s.registeredIn.Load())
		if err == nil && w.Complete {
			w.Claims, err = one.claims(ctx)
		}
		return err
	})
	if err != nil || w.ClusterID == "" {
		s.shown.note(since.Shown)
	}
	return w, err
}

// claims reads the claims of the node from the server that has just answered with a list of
// allocations. So the claims are not older than the list. A server of an older release has no
// claims.
func (s httpServer) claims(ctx context.Context) (claims []*cluster.VolumeClaim, err error) {
	all, _, err := s.self.Volumes(ctx, 0, 0)
	if api.NotFound(err) {
		return nil, nil
	}
	for _, v := range all {
		claims = append(claims, v.Claims...)
	}
	return claims, err
}

// changesOf converts an answer for the core.
func changesOf(c api.Changes) client.Changes {
	w := client.Changes{
		ClusterID: c.ClusterID, Index: c.Index, History: c.History, Allocs: c.Allocs, All: c.Complete, Known: c.Live, Complete: c.Live != nil, Nameless: c.Nameless,
	}
	for _, u := range c.Unreadable {
		w.Unreadable = append(w.Unreadable, client.Unreadable(u))
	}
	return w
}

// Report implements [Servers].
func (s *httpServers) Report(ctx context.Context, reports []cluster.AllocReport) error {
	return s.send(func(one httpServer) error {
		answer, err := one.self.ReportAllocs(ctx, reports)
		s.shown.note(answer.State)
		return err
	})
}

// Data implements [DataServers].
func (s *httpServers) Data(ctx context.Context, alloc cluster.AllocID, folders []string, from datacopy.Position) (stream io.ReadCloser, answer client.DataAnswer) {
	query := url.Values{wire.DataFolder: folders}
	if from.Path != "" {
		query.Set(wire.DataAfter, from.Path)
		query.Set(wire.DataOffset, strconv.FormatInt(from.Offset, 10))
	}
	var response *http.Response
	err := s.send(func(one httpServer) (err error) {
		response, err = one.self.Data(ctx, alloc, query)
		if err == nil && response.StatusCode >= http.StatusInternalServerError && !waits(response) {
			err = errors.New(response.Status)
		}
		return err
	})
	if response == nil {
		return nil, client.DataAnswer{Result: client.DataUnreached, Why: err.Error()}
	}
	answer.Source = cluster.AllocID(response.Header.Get(wire.DataSource))
	if response.StatusCode == http.StatusOK {
		return response.Body, answer
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, cluster.MaxTaskEventBytes)) // a text that ends early is a reason too
	answer.Why = strings.TrimSpace(string(text))
	switch {
	case response.StatusCode == http.StatusGone:
		answer.Result = client.DataRefused
	case waits(response):
		answer.Result = client.DataWaits
	case response.StatusCode >= http.StatusInternalServerError && response.StatusCode != http.StatusBadGateway:
		// The server has no leader, or stops.
		answer.Result, answer.Why = client.DataUnreached, fmt.Sprintf("the server answers %d: %s", response.StatusCode, answer.Why)
	default:
		answer.Result, answer.Why = client.DataFailed, fmt.Sprintf("the server answers %d: %s", response.StatusCode, answer.Why)
	}
	return nil, answer
}

// waits reports whether a server answers that the data cannot be sent yet.
func waits(r *http.Response) bool {
	return r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != ""
}

// OpenSession implements [Servers]. Each session uses the server after the server of the last
// session, because that one may be stopping.
func (s *httpServers) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	at := s.sessionAt.Add(1) - 1
	return s.all[at%uint64(len(s.all))].self.OpenSession(ctx)
}

// othersTimeout is how long the client waits for the other servers after the first has answered.
const othersTimeout = 2 * time.Second

// anonymity is the answer of one server: whether it accepts jobs without a token.
type anonymity struct {
	accept bool
	err    error
}

// AcceptAnonymous implements [Servers]. It sends a request to all servers, because an attacker needs only one
// server that requires no token. Servers that do not answer are ignored. If no server answers, it
// returns an error.
func (s *httpServers) AcceptAnonymous(ctx context.Context) (accept bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	answers := make(chan anonymity, len(s.all))
	for _, one := range s.all {
		running.Go(func() {
			accept, err := one.acceptsAnonymous(ctx)
			answers <- anonymity{accept, err}
		})
	}
	var late <-chan time.Time
	var errs []error
	for range s.all {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case a.accept:
				return true, nil
			case late == nil:
				late = time.After(othersTimeout)
			}
		case <-late:
			return false, nil
		}
	}
	if late != nil {
		return false, nil
	}
	return false, errors.Join(errs...)
}

// acceptsAnonymous sends an invalid job without a token to a server. A server that requires a token
// refuses it before it reads the job.
func (s httpServer) acceptsAnonymous(ctx context.Context) (accept bool, err error) {
	_, _, err = s.stranger.RegisterJob(ctx, json.RawMessage("{}"))
	answer, is := errors.AsType[*api.Error](err)
	switch {
	case err == nil:
		return true, nil
	case !is || !api.Refused(err):
		return false, err
	case answer.Status == http.StatusForbidden && answer.Body == tokenMissing:
		return false, nil
	case answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized:
		return false, fmt.Errorf("the server refuses this client, and not because a token is missing: %w", err)
	}
	return true, nil
}

// tokenMissing is the answer of a server that requires a token. Other refusals do not count: a
// server without tokens refuses requests for another host name, and an attacker can avoid that.
const tokenMissing = "Permission denied"

var _ VolumeServers = (*httpServers)(nil)

// claim reads a claim of the node and its volume. Both are nil if the server has no such claim.
func (s *httpServers) claim(ctx context.Context, k cluster.ClaimKey) (v *cluster.Volume, c *cluster.VolumeClaim, err error) {
	err = s.send(func(one httpServer) error {
		found, err := one.self.Volume(ctx, k.Volume)
		if found == nil {
			return err
		}
		v = found.Volume
		for _, claim := range found.Claims {
			if claim.Key() == k {
				c = claim
			}
		}
		return err
	})
	if c == nil {
		v = nil
	}
	return v, c, err
}

// ClaimVolume implements [VolumeServers]. The plan that placed the allocation has created the
// claim, and the leader answers with the newest state. So a missing claim will not appear later:
// the start of the task fails, and the servers replace the allocation after its last restart.
func (s *httpServers) ClaimVolume(ctx context.Context, k cluster.ClaimKey) (storage.Claimed, error) {
	v, c, err := s.claim(ctx, k)
	switch {
	case err != nil:
		return storage.Claimed{}, err
	case c == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the servers no longer have the claim of the allocation")
	case !c.State.OnNode():
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the claim is released: its state is %q", c.State)
	case v == nil:
		return storage.Claimed{}, storage.Errorf(storage.Refused, "the volume was deregistered by force")
	case c.WaitsForController():
		return storage.Claimed{}, errors.New("a controller must attach the volume to the node")
	}
	return storage.Claimed{
		Plugin: v.Plugin, ExternalID: v.ExternalID, Options: v.MountOptions, PublishContext: c.PublishContext,
		Context: v.Context, Secrets: v.Secrets,
	}, nil
}

// ReleaseVolume implements [VolumeServers]. The leader answers. If it does not have the claim, the
// claim is released.
func (s *httpServers) ReleaseVolume(ctx context.Context, k cluster.ClaimKey) error {
	_, c, err := s.claim(ctx, k)
	if err != nil {
		return err
	}
	if c != nil && c.State.OnNode() {
		err := s.send(func(one httpServer) error {
			answer, err := one.self.Release(ctx, []cluster.ClaimKey{k})
			s.shown.note(answer.State)
			return err
		})
		if err != nil {
			return err
		}
		if _, c, err = s.claim(ctx, k); err != nil {
			return err
		}
	}
	if c != nil {
		return errors.New("a controller must detach the volume from the node")
	}
	return nil
}

func forbidden(err error) bool {
	answer, is := errors.AsType[*api.Error](err)
	return is && answer.Status == http.StatusForbidden
}
