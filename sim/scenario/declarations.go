package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A line may only use names that lines above it declare.

func (p *scope) checkNode(id cluster.NodeID) error {
	if p.nodes[id] == 0 {
		return fmt.Errorf("there is no node %s", id)
	}
	return nil
}

func (p *scope) checkJob(key cluster.JobKey) error {
	if p.jobs[key] == nil {
		return fmt.Errorf("there is no job %s", JobText(key))
	}
	return nil
}

// theJob reads one declared job.
func (p *scope) theJob(text string) (cluster.JobKey, error) {
	key, err := parseJob(text)
	if err == nil {
		err = p.checkJob(key)
	}
	return key, err
}

func (p *scope) checkGroup(key cluster.GroupKey) error {
	if err := p.checkJob(key.Job); err != nil {
		return err
	}
	if !p.jobs[key.Job].groups[key.Name] {
		return fmt.Errorf("job %s has no group %s", JobText(key.Job), key.Name)
	}
	return nil
}

// theNodes reads several declared nodes, each once.
func (p *scope) theNodes(text string) ([]cluster.NodeID, error) {
	ids, err := p.someNodes(text)
	if err != nil {
		return nil, err
	}
	found := make(map[cluster.NodeID]bool, len(ids))
	for _, id := range ids {
		if found[id] {
			return nil, fmt.Errorf("%s is listed twice", id)
		}
		found[id] = true
	}
	return ids, nil
}

// someNodes reads several declared nodes.
func (p *scope) someNodes(text string) ([]cluster.NodeID, error) {
	names, err := p.names(text)
	if err != nil {
		return nil, err
	}
	ids := nodeIDs(names)
	for _, id := range ids {
		if err := p.checkNode(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// theNode reads one declared node.
func (p *scope) theNode(text string) (cluster.NodeID, error) {
	return cluster.NodeID(text), p.checkNode(cluster.NodeID(text))
}

// anotherServer reads a server that is not yet listed.
func (p *scope) anotherServer(before []int, text string) (int, error) {
	if !isServer(text) {
		return 0, fmt.Errorf("%q is not a server: servers are s1, s2", text)
	}
	n, err := p.server(text)
	if slices.Contains(before, n) {
		err = fmt.Errorf("%s is listed twice", text)
	}
	return n, err
}

// isServer reports whether a word has the form of a server, and is no parameter.
func isServer(word string) bool {
	digits, is := strings.CutPrefix(word, "s")
	_, err := strconv.Atoi(digits)
	return is && err == nil
}

// server reads a server of the cluster: "s2".
func (p *scope) server(text string) (int, error) {
	n, _ := strconv.Atoi(text[1:]) // isServer
	if servers := max(1, p.cluster.Servers); n < 1 || n > servers || serverText(n) != text {
		return 0, fmt.Errorf("there is no server %s: the cluster has %d", text, servers)
	}
	return n, nil
}

func serverText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("s%d", n)
}

// checkCut checks the servers and nodes that stay broken after the calm.
func (s *Scenario) checkCut() error {
	run := &s.Run
	switch {
	case run.Calm == 0 && (run.CutServers != nil || run.CutNodes != nil):
		return errors.New("cut-servers and cut-nodes need calm=")
	case 2*len(run.CutServers) >= max(1, s.Cluster.Servers) && run.CutServers != nil:
		return fmt.Errorf("%d of %d servers are not a minority: no server could lead", len(run.CutServers), max(1, s.Cluster.Servers))
	}
	return nil
}

// selector reads a selector of declared names.
func (p *scope) selector(text string) (Selector, error) {
	s, err := ParseSelector(text)
	if err != nil {
		return s, err
	}
	var errs []error
	switch {
	case s.Group != "":
		errs = append(errs, p.checkGroup(cluster.GroupKey{Job: s.Job, Name: s.Group}))
	case s.Job != (cluster.JobKey{}):
		errs = append(errs, p.checkJob(s.Job))
	}
	if s.Node != "" {
		errs = append(errs, p.checkNode(s.Node))
	}
	return s, errors.Join(errs...)
}

// oneAlloc reads one allocation of a declared group.
func (p *scope) oneAlloc(text string) (AllocName, error) {
	n, err := parseAlloc(text)
	if err != nil {
		return n, err
	}
	err = p.checkGroup(n.Group)
	if n.Node != "" {
		err = errors.Join(err, p.checkNode(n.Node))
	}
	return n, err
}

func (p *scope) checkTarget(kind FaultKind, v string) error {
	if kind.On == NoTarget {
		return fmt.Errorf("%s has no target", kind.Name)
	}
	if kind.On == OnNode {
		return p.checkNode(cluster.NodeID(v))
	}
	if kind.On == OnWrites {
		writes := slices.Concat([]string{"drainer", "scheduler", "clients", "operator", "collector", "volumes", "confirmer"}, entryKinds(), []string{"barrier"})
		if !slices.Contains(writes, v) {
			return unknown("writes", v, writes)
		}
		return nil
	}
	s, err := p.selector(v)
	switch {
	case err != nil:
		return err
	case v == "*" || s.String() != v:
		return fmt.Errorf("%q: write %s", v, strings.TrimPrefix(s.String(), "*"))
	case kind.On == OnJob && s != Selector{Job: s.Job}:
		return fmt.Errorf("the target of %s is a job", kind.Name)
	case kind.On == OnGroup && s != Selector{Job: s.Job, Group: s.Group}:
		return fmt.Errorf("the target of %s is a job or a group", kind.Name)
	}
	return nil
}
