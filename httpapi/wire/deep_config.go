package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
)

// maxReadableDepth bounds the nesting of a config in an answer. encoding/json refuses a whole answer
// with more than 10,000 levels. An answer, and a record of a client, has fewer than 100 levels around
// a config. Registrations are limited to less, but servers of an older release accepted deeper configs.
const maxReadableDepth = 9_900

// unreadable returns why clients cannot read the config, or an empty text.
func unreadable(config json.RawMessage) string {
	if len(config) < 2*maxReadableDepth {
		return "" // each level has two brackets
	}
	if depth := jsonscan.Depth(config); depth > maxReadableDepth {
		return fmt.Sprintf("the config is nested %d levels deep, and clients read at most %d", depth, maxReadableDepth)
	}
	return ""
}

// leftOutKey is the only key of the object that an answer has in place of an unreadable config.
const leftOutKey = "left_out_of_the_answer"

// LeftOut reports whether the config stands in an answer for one that readers could not read.
func LeftOut(config json.RawMessage) bool {
	if !bytes.Contains(config, []byte(leftOutKey)) {
		return false
	}
	var keys map[string]json.RawMessage
	return json.Unmarshal(config, &keys) == nil && len(keys) == 1 && keys[leftOutKey] != nil
}

// readableConfig returns the config, or an object with the reason why the answer leaves it out.
func readableConfig(config json.RawMessage) json.RawMessage {
	why := unreadable(config)
	if why == "" {
		return config
	}
	text, err := json.Marshal(map[string]string{leftOutKey: why})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

// unreadableGroup returns why clients cannot read a group of the job, or an empty text. A nil job has no
// groups.
func unreadableGroup(j *cluster.Job, group string) string {
	g := j.Group(group)
	if g == nil {
		return ""
	}
	for _, t := range g.Tasks {
		if t == nil {
			continue
		}
		if why := unreadable(t.Config); why != "" {
			return fmt.Sprintf("task %q: %s", t.Name, why)
		}
	}
	return ""
}
