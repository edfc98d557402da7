package jobfields

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/spelling"
)

// Bounds of an answer: how many warnings or reasons it has.
const (
	maxWarnings = 100
	maxReasons  = 10
)

// Check reads the body of a registration, a plan or a validation of a job for a cluster of the region. It returns
// a warning for each field that has no effect, and for each unknown key. It refuses a body that is no JSON object,
// and a job with fields that do harm if they are ignored.
//
// In the returned body all durations are numbers. The caller decodes it, which checks the types of what is kept.
func Check(body []byte, region string) (read []byte, warnings []string, err error) {
	var keys map[string]json.RawMessage
	if err := jsonbody.DecodeDeep(body, &keys); err != nil {
		return nil, nil, err
	}
	if path, twice := jsonscan.Twice(body); twice {
		return nil, nil, failure.Bad("%s is in the request body twice", path)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // keeps large and long numbers
	var request map[string]any
	if err := decoder.Decode(&request); err != nil {
		return nil, nil, failure.Bad("%v", err)
	}
	root := newTree(requestFields(), Fields())
	job := root.children["job"]
	for name, value := range request {
		if w, is := value.(map[string]any); is && strings.EqualFold(name, "Job") {
			job.children["region"].allow(region)
			job.children["name"].allow(valueOf(w, "ID"))
		}
	}
	c := check{warnings: texts{most: maxWarnings}, reasons: texts{most: maxReasons}}
	c.object(root, request, place{})
	c.ourMeta(root, request)
	if reasons := c.reasons.all(); len(reasons) > 0 {
		return nil, nil, failure.New(http.StatusBadRequest, strings.Join(reasons, "\n"))
	}
	if c.converted {
		if body, err = json.Marshal(request); err != nil {
			return nil, nil, err
		}
	}
	return body, c.warnings.all(), nil
}

// texts are the first of the messages of one kind, each once.
type texts struct {
	most  int
	first []string
	more  int
}

// full reports whether a further message is only counted.
func (t *texts) full() bool { return len(t.first) >= t.most }

func (t *texts) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case slices.Contains(t.first, text):
	case t.full():
		t.more++
	default:
		t.first = append(t.first, text)
	}
}

// all returns the messages, and how many more there are.
func (t *texts) all() []string {
	if t.more == 0 {
		return t.first
	}
	return append(slices.Clone(t.first), fmt.Sprintf("and %d more", t.more))
}

// valueOf returns a member of an object. As for the decoder, the case of the key does not matter.
func valueOf(object map[string]any, key string) any {
	for name, value := range object {
		if strings.EqualFold(name, key) {
			return value
		}
	}
	return nil
}

// place is where a value is: the names of the job's parts, and the path below the last of them.
type place struct {
	parts []string
	path  string
}

// text is the start of a message.
func (p place) text() string {
	text := strings.Join(p.parts, ", ")
	if text != "" && p.path != "" {
		text += ": "
	}
	return text + p.path
}

// within is the place of a field. The job, its groups and their tasks are parts; anything else is a path.
func (p place) within(n *node, label string) place {
	name := cmp.Or(n.Name, n.key)
	if label != "" {
		name += " " + failure.Quoted(label)
	}
	switch n.Path {
	case "Job", "TaskGroups[]": // the name of a group is enough without the job
		return place{parts: []string{name}}
	case "TaskGroups[].Tasks[]":
		return place{parts: append(slices.Clone(p.parts), name)}
	}
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{p.parts, name}
}

// check collects what is wrong with one request.
type check struct {
	warnings texts
	reasons  texts
	// converted: a duration was a text.
	converted bool
}

// object checks the members of an object, in the order of their keys.
func (c *check) object(n *node, value any, at place) {
	members, is := value.(map[string]any)
	if !is {
		c.warnings.add("%s is no object and has no effect", at.text())
		return
	}
	known := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key := strings.ToLower(name)
		child := n.children[key]
		if child != nil && known[key] != "" {
			c.reasons.add("%s: %q and %q are the same key", at.text(), known[key], name)
		}
		known[key] = name
		switch {
		case child == nil:
			c.unknown(n, name, at)
		case members[name] == nil:
		case c.unused(child, members, at):
		case child.Duration:
			members[name] = c.duration(child, members[name], at)
		default:
			c.field(child, members[name], at)
		}
	}
	if n.Needs != "" && zero(valueOf(members, n.Needs)) {
		c.warnings.add("%s has no effect: %s", at.text(), n.Why)
	}
	if isService(n) {
		c.checks(n, members, at)
	}
}

// unknown warns of a key that is in no row.
func (c *check) unknown(n *node, name string, at place) {
	if c.warnings.full() {
		c.warnings.more++
		return
	}
	text := fmt.Sprintf("unknown key %s has no effect", failure.Quoted(name))
	if where := at.text(); where != "" {
		text = where + ": " + text
	}
	if like := n.resembling(name); like != "" {
		text += fmt.Sprintf("; the nearest known key is %q", like)
	}
	c.warnings.add("%s", text)
}

// resembling returns the key of the block that an unknown one resembles, or has as its name in HCL, or empty.
func (n *node) resembling(name string) string {
	if len(name) > failure.QuotedBytes {
		return ""
	}
	for _, child := range n.children {
		if name == child.Name {
			return child.key
		}
	}
	like := n.children[spelling.Nearest(strings.ToLower(name), slices.Sorted(maps.Keys(n.children)))]
	if like == nil {
		return ""
	}
	return like.key
}

// duration returns the nanoseconds of a duration that may be a text.
func (c *check) duration(n *node, value any, at place) any {
	text, is := value.(string)
	if !is {
		return value
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		c.reasons.add("%s is %s; it must be a duration such as \"30s\", or a whole number of nanoseconds", at.within(n, "").text(), failure.Quoted(text))
		return value
	}
	c.converted = true
	return json.Number(strconv.FormatInt(int64(d), 10))
}

// field checks a value other than null.
func (c *check) field(n *node, value any, at place) {
	c.nulls(n, value, at.within(n, ""))
	if n.Verdict == Kept || n.Verdict == NotRead {
		return
	}
	switch {
	case n.list:
		elements, is := value.([]any)
		if !is {
			c.warnings.add("%s is no list and has no effect", at.within(n, "").text())
		}
		for i, element := range elements {
			c.value(n, element, at.within(n, labelOf(n, element, i)))
		}
	case n.keyed:
		members, is := value.(map[string]any)
		if !is {
			c.warnings.add("%s is no object and has no effect", at.within(n, "").text())
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			c.value(n, members[name], at.within(n, name))
		}
	default:
		c.value(n, value, at.within(n, ""))
	}
}

// nulls refuses null as an element of a list, and as a member of a map: the decoder would make an empty one of it. The
// blocks in a list or a map follow one by one. The schema of a driver judges its config.
func (c *check) nulls(n *node, value any, at place) {
	if n.Verdict == NotRead || n.Path == "TaskGroups[].Tasks[].Config" {
		return
	}
	deep := n.Verdict == Kept
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			if element == nil {
				c.reasons.add("%s: element %d is null: give it a value, or leave it out", at.text(), i)
			} else if deep {
				c.nulls(n, element, at)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if value[name] == nil && (deep || n.keyed) {
				c.reasons.add("%s: %s is null: give it a value, or leave it out", at.text(), failure.Quoted(name))
			} else if deep {
				c.nulls(n, value[name], place{at.parts, at.path + " " + failure.Quoted(name)})
			}
		}
	}
}

// unused warns of a field that has no effect beside the other fields of its block.
func (c *check) unused(n *node, members map[string]any, at place) bool {
	value := valueOf(members, n.key)
	for _, need := range n.Beside {
		if empty(value) || len(need.At) > 0 && !isOneOf(value, need.At) || need.holds(members) {
			continue
		}
		what, key := at.within(n, "").text(), hclName(need.Key)
		if len(need.At) > 0 {
			what += fmt.Sprintf(" %q", value)
		}
		if len(need.Values) == 0 {
			c.warnings.add("%s has no effect without %s", what, key)
		} else {
			text, _ := valueOf(members, need.Key).(string)
			c.warnings.add("%s has no effect with %s %s: it is for %s %s", what, key, failure.Quoted(text), key, strings.Join(need.Values, " or "))
		}
		return true
	}
	return false
}

// holds reports whether the fields of a block fulfil the condition.
func (c Condition) holds(members map[string]any) bool {
	value := valueOf(members, c.Key)
	return len(c.Values) == 0 && !empty(value) || isOneOf(value, c.Values)
}

func isOneOf(value any, texts []string) bool {
	text, is := value.(string)
	return is && slices.Contains(texts, text)
}

// labelOf is the name of an element of a list, or empty. Groups and tasks without a name have their index.
func labelOf(n *node, element any, index int) string {
	members, _ := element.(map[string]any)
	for _, key := range []string{"Name", "Label", "Volume", "DestPath"} {
		if name, is := valueOf(members, key).(string); is && name != "" {
			return name
		}
	}
	if n.Path == "TaskGroups[]" || n.Path == "TaskGroups[].Tasks[]" {
		return strconv.Itoa(index)
	}
	return ""
}

// value checks one value of a field, at its place.
func (c *check) value(n *node, value any, at place) {
	if value == nil {
		return
	}
	what := at.text()
	if text, is := value.(string); is && len(n.Silent) > 0 {
		what += " " + failure.Quoted(text)
	}
	switch {
	case n.Verdict == "":
		c.object(n, value, at)
	case n.accepts(value):
	case n.Verdict == Refused:
		c.reasons.add("%s is not supported: %s", what, n.Why)
	default:
		c.warnings.add("%s is not supported and has no effect: %s", what, n.Why)
	}
}

// node is a row with those below it.
type node struct {
	Field
	key      string
	children map[string]*node // by the key in lower case
	// list and keyed are fields with several values.
	list, keyed bool
	allowed     []any
}

// newTree makes a tree of the fields of a request and of its job.
func newTree(request, fields []Field) *node {
	root := &node{children: map[string]*node{}}
	add := func(above *node, f Field) *node {
		n := &node{Field: f, key: key(f.Path), children: map[string]*node{}, list: strings.HasSuffix(f.Path, "[]"), keyed: strings.HasSuffix(f.Path, "{}")}
		above.children[strings.ToLower(n.key)] = n
		for _, text := range f.Silent {
			n.allow(parsed(text))
		}
		return n
	}
	for _, f := range request {
		add(root, f)
	}
	at := map[string]*node{"": root.children["job"]}
	for _, f := range fields {
		above, _ := parent(f.Path)
		at[f.Path] = add(at[above], f)
	}
	return root
}

// parsed is a value of the table.
func parsed(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(errors.New("jobfields: a silent value is no JSON: " + text))
	}
	return value
}

func (n *node) allow(value any) { n.allowed = append(n.allowed, value) }

// accepts reports whether a value of the field needs neither a warning nor a refusal.
func (n *node) accepts(value any) bool {
	if len(n.Silent) == 0 && zero(value) {
		return true
	}
	return slices.ContainsFunc(n.allowed, func(one any) bool { return equal(value, one) })
}

// zero reports whether a value is null, false, 0 or an empty text. An empty block is not: it is there.
func zero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case string:
		return value == ""
	case json.Number:
		number, err := value.Float64()
		return err == nil && number == 0
	}
	return false
}

// empty reports whether a value is zero, or a list or an object without elements.
func empty(value any) bool {
	switch value := value.(type) {
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return zero(value)
}

// equal compares a value with one of the table. A text may be a duration.
func equal(value, one any) bool {
	switch one := one.(type) {
	case map[string]any:
		members, is := value.(map[string]any)
		if !is || len(members) != len(one) {
			return false
		}
		for name, member := range one {
			if !equal(valueOf(members, name), member) {
				return false
			}
		}
		return true
	case json.Number:
		number, _ := one.Float64()
		switch value := value.(type) {
		case json.Number:
			got, err := value.Float64()
			return err == nil && got == number
		case string:
			d, err := time.ParseDuration(value)
			return err == nil && float64(d) == number
		}
		return false
	case bool:
		got, is := value.(bool)
		return is && got == one
	case string:
		got, is := value.(string)
		return is && got == one
	}
	return false
}
