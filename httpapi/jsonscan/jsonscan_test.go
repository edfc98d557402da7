//race:skip one goroutine
package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// deepest is the simple twin of Depth.
func deepest(t *testing.T, text []byte) (most int) {
	t.Helper()
	depth := 0
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return most
		}
		must.NoError(t, err)
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			most = max(most, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

func TestDeeper(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`5`: "", `[[]]`: "", `[[[]]]`: "[0][0]", `[1,{"a":"[[[[","b":[]}]`: "[1].b", `{"a":{"b\n":[1,[],{}]}}`: "a.b\n[1]", `{"a":{},"b":[[{}]]}`: "b[0][0]",
		`{"Job":{"TaskGroups":[1,{}]}}`: "Job.TaskGroups[1]",
	} {
		most := 2
		if strings.HasPrefix(text, `{`) {
			most = 3
		}
		path, found := jsonscan.Deeper([]byte(text), most)
		must.Eq(t, want, path, must.Sprint(text))
		must.Eq(t, want != "", found, must.Sprint(text))
	}
	path, found := jsonscan.Deeper([]byte(strings.Repeat(`{"`+strings.Repeat("ä", 40)+`":[`, 10_001)), 10_000)
	must.True(t, found)
	must.Eq(t, strings.TrimPrefix(strings.Repeat("."+strings.Repeat("ä", 16)+"…[0]", 4), ".")+"…", path)
}

// An error of encoding/json is in the value that the path names.
func TestAt(t *testing.T) {
	t.Parallel()
	type task struct {
		Count *int8
		Meta  map[string]string
		List  []uint8
	}
	type job struct {
		Tasks []*task
		Named map[string]*task
	}
	for text, want := range map[string]string{
		`{"Tasks":[{},{"Count":"a"}]}`:                                                 "Tasks[1].Count",
		`{"Tasks":[{"Meta":{"x":"y"},"Count":1},{"Count": 1000 }]}`:                    "Tasks[1].Count",
		`{"Tasks":[{"Count":1.5},{"Count":1}]}`:                                        "Tasks[0].Count",
		`{"Tasks":[{"Count":{"a":[1,2]}}]}`:                                            "Tasks[0].Count",
		`{"Tasks":[{"Count":[{"a":1}]}]}`:                                              "Tasks[0].Count",
		`{"Tasks":[{"Count":true}]}`:                                                   "Tasks[0].Count",
		`{"Tasks":[{"Meta":{"a,":"b:","c\"{":[]}}]}`:                                   `Tasks[0].Meta.c"{`,
		`{"Tasks":[{"Meta":{"a":1}}]}`:                                                 "Tasks[0].Meta.a",
		`{"Tasks":[null,5]}`:                                                           "Tasks[1]",
		`{"Tasks":{"a":1}}`:                                                            "Tasks",
		`{"Tasks":[{"List":[1,2]},{"List":[[]]}]}`:                                     "Tasks[1].List[0]",
		`{"Named":{"web":{"Count":0},"` + strings.Repeat("n", 40) + `":{"Count":{}}}}`: "Named." + strings.Repeat("n", 32) + "….Count",
		`[]`:  "",
		`"a"`: "",
		// no JSON
		`{"Tasks":[{},{"Count":x}]}`:   "Tasks[1].Count",
		`{"Tasks":[{},{"Count":1,}]}`:  "Tasks[1]",
		`{"Tasks":[{"Meta":{}},{Count`: "Tasks[1]",
		`{"Tasks":[{"Meta":{"a":"b"}}`: "Tasks[0]",
		`{"Tasks":[{"Count":1}]} {}`:   "",
		`x`:                            "",
		``:                             "",
	} {
		err := json.Unmarshal([]byte(text), new(job))
		must.Error(t, err, must.Sprint(text))
		offset := int64(0)
		if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
			offset = mistyped.Offset
		} else if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			offset = syntax.Offset
		}
		must.Eq(t, want, jsonscan.At([]byte(text), int(offset)), must.Sprint(text))
	}
	must.Eq(t, strings.Repeat("[0]", 16)+"…", jsonscan.At([]byte(strings.Repeat("[", 100)), 100))
}

func TestElements_mistakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `5`, `{}`, `[`, `[1`, `[1,`, `[1 2]`, `[,]`, `[1,,2]`, `["a`, `[1]]`, `[[1]`, `[:]`} {
		_, err := jsonscan.Elements([]byte(text))
		must.Error(t, err, must.Sprint(text))
	}
	for _, text := range []string{``, `5`, `[]`, `{`, `{1:2}`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1}{`, `{"a`, `{"\q":1}`} {
		_, err := jsonscan.Members([]byte(text))
		must.Error(t, err, must.Sprint(text))
	}
}

// A value that encoding/json refuses does not hide the others.
func TestElements_deep(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	text := []byte(` [ "a,]" , ` + deep + `, {"b":[1]},null ] `)
	must.False(t, json.Valid(text))
	elements := result.Of(jsonscan.Elements(text)).OK(t)
	must.Eq(t, [][]byte{[]byte(`"a,]"`), []byte(deep), []byte(`{"b":[1]}`), []byte(`null`)}, elements)
	must.Eq(t, 20_001, jsonscan.Depth(text))
}

// Valid JSON is split and measured as encoding/json does it.
func FuzzScan(f *testing.F) {
	for _, text := range []string{`[]`, `{}`, `[1,"a\"]",{"b":[null]}]`, `{"a":{"b":"\\"},"a":[[]],"\u0061":1e5}`, " [ 1 ,\n2 ] ", `[`, `["\ud800"]`, `-1`, `{"":""}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		elements, arrayErr := jsonscan.Elements(text)
		members, objectErr := jsonscan.Members(text)
		jsonscan.Deeper(text, 2)
		for offset := range len(text) + 2 {
			jsonscan.At(text, offset)
		}
		depth := jsonscan.Depth(text)
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		must.Eq(t, deepest(t, text), depth)
		_, deeper := jsonscan.Deeper(text, depth)
		must.False(t, deeper)
		if depth > 0 {
			_, deeper = jsonscan.Deeper(text, depth-1)
			must.True(t, deeper)
		}
		var raw []json.RawMessage
		if _, isArray := value.([]any); isArray {
			must.NoError(t, arrayErr)
			must.NoError(t, json.Unmarshal(text, &raw))
			must.Eq(t, len(raw), len(elements))
			for i := range raw {
				must.Eq(t, string(raw[i]), string(elements[i]))
			}
		}
		if _, isObject := value.(map[string]any); !isObject {
			return
		}
		must.NoError(t, objectErr)
		decoder := json.NewDecoder(bytes.NewReader(text))
		result.Of(decoder.Token()).OK(t)
		for _, m := range members {
			key := result.Of(decoder.Token()).OK(t)
			must.Eq(t, any(m.Key), any(key))
			var one json.RawMessage
			must.NoError(t, decoder.Decode(&one))
			must.Eq(t, string(one), string(m.Value))
		}
		must.False(t, decoder.More())
	})
}

func TestTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":{"a":2,"A":3},"c":[{"a":1},{"a":":,{"}]}`: "",
		`{"a":1,"a":2}`:                   "a",
		`{"b":[0,{"a":"a","x":1,"a":2}]}`: "b[1].a",
		`{"b":{"a":{},"\u0061":2}}`:       "b.a",
		`[]`:                              "",
		`:"a":1`:                          "",
		`]}{"a":`:                         "",
	} {
		path, found := jsonscan.Twice([]byte(text))
		must.EqOp(t, want, path)
		must.EqOp(t, want != "", found)
	}
}
