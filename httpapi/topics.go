package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The topics of events.
const (
	topicNode  = "Node"
	topicAlloc = "Allocation"
	topicEval  = "Evaluation"
	topicJob   = "Job"
)

// topics are the keys that an event stream wants, by topic. A topic that is not wanted is missing.
type topics map[string][]string

// anyTopic and anyKey stand for all.
const (
	anyTopic = "*"
	anyKey   = "*"
)

// parseTopics reads values like "Node", "Job:web" and "*"; none is all. Topics of the reference that
// this system does not have are accepted, and have no events.
func parseTopics(values []string) (topics, error) {
	if len(values) == 0 {
		values = []string{anyTopic}
	}
	wanted := topics{}
	for _, value := range values {
		topic, key, hasKey := strings.Cut(value, ":")
		if !hasKey {
			key = anyKey
		}
		switch topic {
		case anyTopic:
			for _, topic := range []string{topicNode, topicAlloc, topicEval, topicJob} {
				wanted[topic] = append(wanted[topic], key)
			}
		case topicNode, topicAlloc, topicEval, topicJob:
			wanted[topic] = append(wanted[topic], key)
		case "Deployment", "NodePool", "Service":
		default:
			return nil, fail(http.StatusBadRequest, fmt.Sprintf("unknown topic %q", topic))
		}
	}
	return wanted, nil
}

// want reports whether the stream wants an event with these keys.
func (t topics) want(topic, key string, filterKeys []string) bool {
	return slices.ContainsFunc(t[topic], func(wanted string) bool {
		return wanted == anyKey || wanted == key || slices.Contains(filterKeys, wanted)
	})
}

// tables are the tables whose changes are events of the wanted topics.
func (t topics) tables() (names []string) {
	for _, one := range []struct{ topic, table string }{
		{topicNode, TableNodes}, {topicAlloc, TableAllocs}, {topicEval, TableEvals}, {topicJob, TableJobs},
	} {
		if t[one.topic] != nil {
			names = append(names, one.table)
		}
	}
	return names
}
