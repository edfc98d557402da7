package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// seed reads "seed 7".
func (p *parser) seed(words []string) error {
	if err := p.onlyOnce("seed"); err != nil {
		return err
	}
	if len(words) != 1 {
		return errors.New("seed takes one number: seed 7")
	}
	n, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a seed: a seed is a number from 0 to 2^64-1", words[0])
	}
	p.scenario.Seed = n
	return nil
}

// single reads a directive that a file may have once.
func (p *parser) single(verb string, fields []field, words []string) error {
	if err := p.onlyOnce(verb); err != nil {
		return err
	}
	_, err := params(fields, words)
	return err
}

func (p *parser) onlyOnce(verb string) error {
	if line := p.once[verb]; line != 0 {
		return fmt.Errorf("%q is already on line %d", verb, line)
	}
	p.once[verb] = p.line
	return nil
}

// node reads "node n1..n6 cpu=4000".
func (p *parser) node(words []string) error {
	text, words, err := subject("the node's name", words)
	if err != nil {
		return err
	}
	ids, err := p.scope.names(text)
	if err != nil {
		return err
	}
	n := Node{IDs: nodeIDs(ids)}
	for _, id := range n.IDs {
		if line := p.scope.nodes[id]; line != 0 {
			return fmt.Errorf("node %s is already on line %d", id, line)
		}
		p.scope.nodes[id] = p.line
	}
	if len(p.scope.nodes) > MaxNodes {
		return fmt.Errorf("more than %d nodes", MaxNodes)
	}
	_, err = params(p.scope.fields(&n), words)
	if n.GPUMilli > 0 && len(n.Devices) > 0 {
		err = errors.Join(err, errTwoGPUs)
	}
	p.scenario.Nodes = append(p.scenario.Nodes, n)
	p.scope.classes[n.Class] = true
	return err
}

func nodeIDs(names []string) []cluster.NodeID {
	ids := make([]cluster.NodeID, len(names))
	for i, n := range names {
		ids[i] = cluster.NodeID(n)
	}
	return ids
}

// jobKeys expands "blue/web" or "blue/web1..web3".
func (p *scope) jobKeys(text string) ([]cluster.JobKey, error) {
	first, _, _ := strings.Cut(text, "..")
	key, err := parseJob(first)
	if err != nil {
		return nil, err
	}
	_, ids, scoped := strings.Cut(text, "/")
	if !scoped {
		ids = text
	}
	names, err := p.nameRange(ids)
	if err != nil {
		return nil, err
	}
	keys := make([]cluster.JobKey, len(names))
	for i, n := range names {
		keys[i] = cluster.JobKey{Namespace: key.Namespace, ID: cluster.JobID(n)}
	}
	return keys, nil
}

// job reads "job web count=6". A range of jobs replaces one line for each job.
func (p *parser) job(words []string) error {
	text, words, err := subject("the job's name", words)
	if err != nil {
		return err
	}
	keys, err := p.scope.jobKeys(text)
	if err != nil {
		return err
	}
	if len(p.scope.jobs)+len(keys) > MaxJobs {
		return fmt.Errorf("more than %d jobs", MaxJobs)
	}
	var job Job
	own := Group{Count: 1}
	fields := p.scope.fields(&own)
	found, err := params(append(p.scope.fields(&job), fields...), words)
	err = errors.Join(err, own.check(), p.uses(keys[0], &own))
	ownGroup := slices.ContainsFunc(fields, func(f field) bool { return slices.Contains(found, f.name) })
	for _, key := range keys {
		if earlier := p.scope.jobs[key]; earlier != nil {
			return fmt.Errorf("job %s is already on line %d", JobText(key), earlier.line)
		}
		p.close()
		own.Name = string(key.ID)
		one := job
		one.Key, one.Groups = key, []Group{deepCopy(own)}
		p.open = &declared{line: p.line, at: len(p.scenario.Jobs), groups: map[string]bool{own.Name: true}, own: ownGroup}
		p.scope.jobs[key] = p.open
		p.scenario.Jobs = append(p.scenario.Jobs, one)
	}
	if len(keys) > 1 {
		p.close()
	}
	return err
}

// close ends a job: no more groups of it may follow.
func (p *parser) close() {
	if p.open == nil {
		return
	}
	job := &p.scenario.Jobs[p.open.at]
	if !p.open.own && len(job.Groups) > 1 { // the line has no parameter of a group
		job.Groups = job.Groups[1:]
		delete(p.open.groups, string(job.Key.ID))
		for _, g := range job.Groups {
			p.open.groups[g.Name] = true
		}
	}
	review{p}.groups(job, p.open.line)
	p.open = nil
}

// group reads "group web.api count=3", which follows the line of its job.
func (p *parser) group(words []string) error {
	text, words, err := subject("the group's name", words)
	if err != nil {
		return err
	}
	key, err := parseGroup(text)
	if err != nil {
		return err
	}
	if p.open == nil || p.scenario.Jobs[p.open.at].Key != key.Job {
		return fmt.Errorf("group %s must follow the line of job %s", GroupText(key), JobText(key.Job))
	}
	job := &p.scenario.Jobs[p.open.at]
	earlier := job.Groups
	if !p.open.own {
		earlier = earlier[1:]
	}
	if slices.ContainsFunc(earlier, func(g Group) bool { return g.Name == key.Name }) {
		return fmt.Errorf("group %s is already declared", GroupText(key))
	}
	g := Group{Name: key.Name, Count: 1}
	_, err = params(p.scope.fields(&g), words)
	err = errors.Join(err, g.check(), p.uses(key.Job, &g))
	job.Groups = append(job.Groups, g)
	p.open.groups[key.Name] = true
	return err
}

// alloc reads "alloc web[0..5] on=n1..n3". A range of jobs replaces one line for each job.
func (p *parser) alloc(words []string) error {
	text, words, err := subject("the group", words)
	if err != nil {
		return err
	}
	if head, at, err := parseIndexes(text); err == nil && strings.Contains(head, "..") {
		return p.allocEach(head, at, words)
	}
	a, err := p.scope.someAllocs(text)
	if err != nil {
		return err
	}
	_, err = params(p.scope.fields(&a), words)
	p.scenario.Allocs = append(p.scenario.Allocs, a)
	return errors.Join(err, p.addAllocs(a))
}

// someAllocs reads the name of allocations of one group.
func (p *scope) someAllocs(text string) (Alloc, error) {
	head, at, err := parseIndexes(text)
	if err != nil {
		return Alloc{}, err
	}
	group, err := parseGroup(head)
	if err == nil {
		err = p.checkGroup(group)
	}
	return Alloc{Group: group, Indexes: at}, err
}

// allocEach reads allocations of a range of jobs, in the groups with the names of the jobs. They are
// all on one node, or those of each job on the next node of a range.
func (p *parser) allocEach(jobs string, at Indexes, words []string) error {
	keys, err := p.scope.jobKeys(jobs)
	if err != nil {
		return err
	}
	a := Alloc{Indexes: at}
	if _, err := params(p.scope.fields(&a), words); err != nil {
		return err
	}
	on := a.On
	a.On = nil
	if len(on) != 1 && (len(on) != len(keys) || !inRow(on)) {
		return fmt.Errorf("on: %d jobs need one node, or a range of %d nodes", len(keys), len(keys))
	}
	for i, key := range keys {
		each := deepCopy(a)
		each.Group = cluster.GroupKey{Job: key, Name: string(key.ID)}
		each.On = []cluster.NodeID{on[min(i, len(on)-1)]}
		if err := errors.Join(p.scope.checkGroup(each.Group), p.addAllocs(each)); err != nil {
			return err
		}
		p.scenario.Allocs = append(p.scenario.Allocs, each)
	}
	return nil
}

// inRow reports whether the names are consecutive.
func inRow(ids []cluster.NodeID) bool {
	for i := 1; i < len(ids); i++ {
		if !follows(string(ids[i]), string(ids[i-1])) {
			return false
		}
	}
	return true
}

// addAllocs counts allocations.
func (p *parser) addAllocs(a Alloc) error {
	if p.allocs += a.number(); p.allocs > MaxAllocs {
		return fmt.Errorf("more than %d allocations", MaxAllocs)
	}
	return nil
}

// number counts the declared allocations.
func (a *Alloc) number() int {
	if a.Indexes.Count == 0 {
		return len(a.On)
	}
	return a.Indexes.Count
}

// client reads "client web@n1 stop=never".
func (p *parser) client(words []string) error {
	text, words, err := subject("the selector: *, a job, a group, an allocation or a node", words)
	if err != nil {
		return err
	}
	var c Client
	if c.Match, err = p.scope.selector(text); err != nil {
		return err
	}
	found, err := params(p.scope.fields(&c), words)
	if err == nil && len(found) == 0 {
		err = errors.New("a client line needs a parameter")
	}
	p.scenario.Clients = append(p.scenario.Clients, c)
	return err
}
