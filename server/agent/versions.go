package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The leader requests the cluster versions of every server every versionInterval, and waits
// versionTimeout for an answer.
const (
	versionInterval = 2 * time.Second
	versionTimeout  = 2 * time.Second
)

// versions raises the cluster version while the server leads, when every server of the cluster
// understands a higher one. It owns a goroutine for each request.
type versions struct {
	agent *Agent
	// lock has capacity 1 and holds a value while it is locked. The leader locks it while it raises
	// the version, and while it adds a server: no server may join between the answers and the
	// entry.
	lock chan struct{}
	// proposed is the highest version that this server has proposed; guarded by lock. A write of
	// unknown outcome may still raise the version to it.
	proposed cluster.Version

	mu sync.Mutex
	// answers are the last answers of the servers, by id, without servers that did not answer. It
	// is nil on a server that does not lead. Guarded by mu.
	answers map[raft.ServerID]cluster.Versions
	// tried is closed when the first round of the term has ended. Each term has its own. Guarded by mu.
	tried chan struct{}
}

func newVersions(a *Agent) *versions {
	return &versions{agent: a, lock: make(chan struct{}, 1), tried: make(chan struct{})}
}

// lead runs rounds during one term, until its context ends.
func (v *versions) lead(ctx context.Context) {
	defer v.endTerm()
	first := sync.OnceFunc(func() { close(v.firstRound()) })
	defer first()
	logger := v.agent.config.Logger
	for logged := ""; ; { // the last error
		err := v.round(ctx)
		first()
		if ctx.Err() != nil {
			return
		}
		if err != nil && err.Error() != logged {
			logger.Info("the cluster version stays the same", "error", err)
		}
		logged = fmt.Sprint(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(versionInterval):
		}
	}
}

// round requests the versions of every server, and raises the cluster version if all of them understand
// a higher one. The error names the servers that do not.
func (v *versions) round(ctx context.Context) error {
	if err := v.acquire(ctx); err != nil {
		return err
	}
	defer v.release()
	a := v.agent
	if err := a.server.CaughtUp(ctx); err != nil { // an earlier leader may have raised the version
		return err
	}
	servers := a.peers().configuration().Servers
	answers := v.requestAll(ctx, servers)
	v.setAnswers(answers)
	present, next := a.server.Store().Snapshot().ClusterVersion(), cluster.MaxVersion
	for _, s := range servers {
		understood, known := answers[s.ID]
		if !known && present < cluster.MaxVersion {
			return fmt.Errorf("server %s does not answer, so the versions that it understands are unknown", s.ID)
		}
		next = min(next, understood.Max)
	}
	switch {
	case next > present:
		before := v.proposed
		v.proposed = max(before, next)
		if _, err := a.server.Requests().RaiseVersion(ctx, next); err != nil {
			if errors.Is(err, shims.ErrRejected) {
				v.proposed = before // the entry is in no log
			}
			return fmt.Errorf("raising the cluster version to %d: %w", next, err)
		}
		a.config.Logger.Info("raised the cluster version: no server can go back to an older build", "from", present, "to", next)
	case present < cluster.MaxVersion:
		return fmt.Errorf("%s: this server understands version %d", olderServers(servers, answers, present), cluster.MaxVersion)
	}
	return nil
}

// olderServers lists the servers that understand no higher version than the present one.
func olderServers(servers []raft.Server, answers map[raft.ServerID]cluster.Versions, present cluster.Version) (text string) {
	for _, s := range servers {
		if answers[s.ID].Max <= present {
			text += fmt.Sprintf("server %s understands version %d at most, ", s.ID, answers[s.ID].Max)
		}
	}
	return text[:max(0, len(text)-2)]
}

// requestAll requests from all servers at once the versions that they understand.
func (v *versions) requestAll(ctx context.Context, servers []raft.Server) map[raft.ServerID]cluster.Versions {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	found, _ := fromAll(servers, func(s raft.Server) (cluster.Versions, error) { // a server that does not answer is missing
		info, err := v.agent.infoOf(ctx, s)
		return info.understood(), err
	})
	return found
}

// admit returns an error if a joining server does not understand the present or the proposed version
// of the cluster. The caller holds the lock.
func (v *versions) admit(ctx context.Context, joining serverInfo) error {
	if err := v.agent.server.CaughtUp(ctx); err != nil {
		return server.Classify(err)
	}
	needed := max(v.agent.server.Store().Snapshot().ClusterVersion(), v.proposed)
	if understood := joining.understood(); !understood.Contains(needed) {
		return fmt.Errorf("it understands cluster versions %s, and the cluster has version %d: upgrade it to a build that understands version %d", understood, needed, needed)
	}
	return nil
}

// fits returns the cluster version: the present one, or the proposed one. It refuses a state of a
// higher version, which some server may not understand. The caller holds the lock.
func (v *versions) fits(ctx context.Context, found cluster.Version) (cluster.Version, error) {
	if err := v.agent.server.CaughtUp(ctx); err != nil {
		return 0, server.Classify(err)
	}
	present := max(v.agent.server.Store().Snapshot().ClusterVersion(), v.proposed)
	if found > present {
		return 0, fmt.Errorf("%w: it has cluster version %d, and this cluster has version %d: upgrade every server, and wait until \"nodedrain server members\" shows version %d",
			httpapi.ErrBadSnapshot, found, present, found)
	}
	return present, nil
}

// acquire waits for the lock. The caller must release it.
func (v *versions) acquire(ctx context.Context) error {
	select {
	case v.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", httpapi.ErrUnavailable, context.Cause(ctx))
	}
}

func (v *versions) release() { <-v.lock }

// endTerm forgets what the term has found.
func (v *versions) endTerm() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers, v.tried = nil, make(chan struct{})
}

func (v *versions) firstRound() chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tried
}

// awaitFirst returns when a new cluster has the version that its servers understand, or the leader could
// not raise it. Before that the servers would drop what a job or node has above version 1.
func (v *versions) awaitFirst(ctx context.Context) error {
	if v.agent.server.Store().Snapshot().ClusterVersion() > cluster.MinVersion {
		return nil
	}
	select {
	case <-v.firstRound():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", httpapi.ErrUnavailable, context.Cause(ctx))
	}
}

func (v *versions) setAnswers(answers map[raft.ServerID]cluster.Versions) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = answers
}

// understoodBy returns the versions that a server understands, or zero if they are unknown.
func (v *versions) understoodBy(id raft.ServerID) cluster.Versions {
	if string(id) == v.agent.Name() {
		return cluster.Understood()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.answers[id]
}
