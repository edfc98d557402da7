package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// maxName limits the length of a name.
const maxName = 100

func checkName(text string) error {
	if text == "" {
		return errors.New("a name is missing")
	}
	if len(text) > maxName {
		return fmt.Errorf("a name of %d characters: at most %d", len(text), maxName)
	}
	for _, r := range text {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", r) {
			return fmt.Errorf("%q is not a name: a name has letters, digits, - and _", text)
		}
	}
	return nil
}

func parseJob(text string) (cluster.JobKey, error) {
	namespace, id, named := strings.Cut(text, "/")
	if !named {
		namespace, id = string(cluster.DefaultNamespace), text
	}
	key := cluster.JobKey{Namespace: cluster.Namespace(namespace), ID: cluster.JobID(id)}
	return key, errors.Join(checkName(namespace), checkName(id))
}

// JobText is "job", or "namespace/job" in another namespace than the default.
func JobText(key cluster.JobKey) string {
	if key.Namespace == cluster.DefaultNamespace {
		return string(key.ID)
	}
	return key.String()
}

// parseGroup reads a group. "web" is the group with the name of its job.
func parseGroup(text string) (cluster.GroupKey, error) {
	job, name, named := strings.Cut(text, ".")
	key, err := parseJob(job)
	if !named {
		name = string(key.ID)
	}
	return cluster.GroupKey{Job: key, Name: name}, errors.Join(err, checkName(name))
}

// GroupText is "job.group", or the job if the group has its name.
func GroupText(key cluster.GroupKey) string {
	if key.Name == string(key.Job.ID) {
		return JobText(key.Job)
	}
	return JobText(key.Job) + "." + key.Name
}

// maxIndex bounds indexes and counts.
const maxIndex = 1_000_000

// parseIndexes splits "web[0..5]" into "web" and its indexes, if it has any.
func parseIndexes(text string) (head string, at Indexes, err error) {
	head, rest, is := strings.Cut(text, "[")
	if !is {
		return text, Indexes{}, nil
	}
	inner, ends := strings.CutSuffix(rest, "]")
	from, to, ranged := strings.Cut(inner, "..")
	if !ranged {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	switch {
	case !ends || errors.Join(err1, err2) != nil || first < 0:
		return "", Indexes{}, fmt.Errorf("%q has no valid index: write web[0] or web[0..5]", text)
	case last < first || last > maxIndex:
		return "", Indexes{}, fmt.Errorf("%q: indexes must increase, to at most %d", text, maxIndex)
	}
	return head, Indexes{First: first, Count: last - first + 1}, nil
}

func (i Indexes) text() string {
	switch i.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("[%d]", i.First)
	}
	return fmt.Sprintf("[%d..%d]", i.First, i.First+i.Count-1)
}

// parseAlloc reads one allocation: "web[0]" or "blue/web.api[0]@n1".
func parseAlloc(text string) (AllocName, error) {
	head, node, placed := strings.Cut(text, "@")
	head, at, err := parseIndexes(head)
	if err != nil {
		return AllocName{}, err
	}
	if at.Count != 1 {
		return AllocName{}, fmt.Errorf("%q is not one allocation: write web[0]", text)
	}
	group, err := parseGroup(head)
	if placed {
		err = errors.Join(err, checkName(node))
	}
	return AllocName{Group: group, Index: at.First, Node: cluster.NodeID(node)}, err
}

// String returns the printed name: "web[0]" or "blue/web.api[0]@n1".
func (n AllocName) String() string {
	text := fmt.Sprintf("%s[%d]", GroupText(n.Group), n.Index)
	if n.Node != "" {
		text += "@" + string(n.Node)
	}
	return text
}
