//race:skip one goroutine
package schema_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
)

// Parts of schemas.

func attr(kind string, required bool) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Type: kind, Required: required}}}
}

func object(parts map[string]*hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Object{Object: &hclspec.Object{Attributes: parts}}}
}

func array(parts ...*hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Array{Array: &hclspec.Array{Values: parts}}}
}

func literal(text string) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Literal{Literal: &hclspec.Literal{Value: text}}}
}

func or(primary, fallback *hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Default{Default: &hclspec.Default{Primary: primary, Default: fallback}}}
}

func blockValue(nested *hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockValue{BlockValue: &hclspec.Block{Nested: nested}}}
}

func blockAttrs(kind string) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockAttrs{BlockAttrs: &hclspec.BlockAttrs{Type: kind}}}
}

func blockList(least, most uint64, nested *hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockList{BlockList: &hclspec.BlockList{Min: least, Max: most, Nested: nested}}}
}

func blockSet(nested *hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockSet{BlockSet: &hclspec.BlockSet{Nested: nested}}}
}

func blockMap(nested *hclspec.Spec, labels ...string) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockMap{BlockMap: &hclspec.BlockMap{Labels: labels, Nested: nested}}}
}

// command is the schema of a driver like raw_exec.
func command() *hclspec.Spec {
	return object(map[string]*hclspec.Spec{
		"command": attr("string", true),
		"args":    attr("list(string)", false),
		"retries": or(attr("number", false), literal("3")),
	})
}

// lookup returns the variables of the tests.
func lookup(name string) (string, bool) {
	value, ok := map[string]string{
		"attr.kernel.name": "linux", "meta.my-key": "v", "meta.a b": "spaces", "NOMAD_TASK_DIR": "/t", "empty": "", "quoted": `"${x}\`,
		"meta.large": strings.Repeat("x", 32<<10),
	}[name]
	return value, ok
}

func TestEncode(t *testing.T) {
	t.Parallel()
	type values = map[string]any
	for name, test := range map[string]struct {
		spec     *hclspec.Spec
		config   string
		expected any
	}{
		"every key":         {command(), `{"command": "sh", "args": ["-c", "x"], "retries": 5}`, values{"command": "sh", "args": []any{"-c", "x"}, "retries": int64(5)}},
		"absent keys":       {command(), `{"command": "sh"}`, values{"command": "sh", "args": nil, "retries": int64(3)}},
		"null is absent":    {command(), `{"command": "sh", "args": null, "retries": null}`, values{"command": "sh", "args": nil, "retries": int64(3)}},
		"other types":       {command(), `{"command": true, "args": [1, false], "retries": "7"}`, values{"command": "true", "args": []any{"1", "false"}, "retries": int64(7)}},
		"a fraction":        {command(), `{"command": "sh", "retries": 1.5}`, values{"command": "sh", "args": nil, "retries": 1.5}},
		"a float's integer": {command(), `{"command": "sh", "retries": 8080.0}`, values{"command": "sh", "args": nil, "retries": uint64(8080)}},
		"variables":         {command(), `{"command": "${ NOMAD_TASK_DIR }/sh", "args": ["${attr.kernel.name}-${meta[\"my-key\"]}", "$${HOME}", "%{ if x }", "${quoted}"]}`, values{"command": "/t/sh", "args": []any{"linux-v", "${HOME}", "%{ if x }", `"${x}\`}, "retries": int64(3)}},
		"no markup":         {command(), `{"command": "a<b>&\u2028"}`, values{"command": "a<b>&\u2028", "args": nil, "retries": int64(3)}},
		"an empty text":     {command(), `{"command": "${empty}"}`, values{"command": "", "args": nil, "retries": int64(3)}},

		"no schema, no config":  {nil, "", values{}},
		"no schema, null":       {nil, "null", values{}},
		"an empty schema":       {&hclspec.Spec{}, "{}", values{}},
		"map":                   {object(map[string]*hclspec.Spec{"labels": attr("map(string)", false)}), `{"labels": {"${meta.my-key}": "${meta.a b}"}}`, values{"labels": values{"v": "spaces"}}},
		"labels of podman":      {object(map[string]*hclspec.Spec{"labels": attr("list(map(string))", false)}), `{"labels": [{"a": "b", "c": "${meta.my-key}"}]}`, values{"labels": []any{values{"a": "b", "c": "v"}}}},
		"any":                   {object(map[string]*hclspec.Spec{"x": attr("any", false), "y": attr("any", false)}), `{"x": {"a": [1, "b", null]}}`, values{"x": values{"a": []any{int64(1), "b", nil}}, "y": nil}},
		"list of any":           {object(map[string]*hclspec.Spec{"x": attr("list(any)", false)}), `{"x": []}`, values{"x": []any{}}},
		"object":                {object(map[string]*hclspec.Spec{"x": attr("object({a = string, b = number})", false)}), `{"x": {"a": "t", "b": 2}}`, values{"x": values{"a": "t", "b": int64(2)}}},
		"block":                 {object(map[string]*hclspec.Spec{"b": blockValue(command()), "c": blockValue(command())}), `{"b": {"command": "sh"}}`, values{"b": values{"command": "sh", "args": nil, "retries": int64(3)}, "c": nil}},
		"block in a list":       {object(map[string]*hclspec.Spec{"b": blockValue(command())}), `{"b": [{"command": "sh"}]}`, values{"b": values{"command": "sh", "args": nil, "retries": int64(3)}}},
		"attributes of a block": {object(map[string]*hclspec.Spec{"p": blockAttrs("number")}), `{"p": {"http": 80, "admin": 81}}`, values{"p": values{"http": int64(80), "admin": int64(81)}}},
		"blocks in a list":      {object(map[string]*hclspec.Spec{"m": blockList(1, 2, object(map[string]*hclspec.Spec{"x": attr("string", true)}))}), `{"m": [{"x": "1"}, {"x": "2"}]}`, values{"m": []any{values{"x": "1"}, values{"x": "2"}}}},
		"blocks in a set":       {object(map[string]*hclspec.Spec{"m": blockSet(object(map[string]*hclspec.Spec{"x": attr("string", true)}))}), `{"m": [{"x": "1"}, {"x": "1"}]}`, values{"m": []any{values{"x": "1"}}}},
		"blocks with labels":    {object(map[string]*hclspec.Spec{"m": blockMap(object(map[string]*hclspec.Spec{"x": attr("string", true)}), "name")}), `{"m": {"a": {"x": "1"}, "b": {"x": "2"}}}`, values{"m": values{"a": values{"x": "1"}, "b": values{"x": "2"}}}},
		"a list's default":      {object(map[string]*hclspec.Spec{"x": or(attr("list(string)", false), literal(`["a", upper("b")]`))}), `{}`, values{"x": []any{"a", "B"}}},
		"a block's default":     {object(map[string]*hclspec.Spec{"x": or(blockValue(object(map[string]*hclspec.Spec{"y": attr("bool", false)})), literal(`{ y = true }`))}), `{}`, values{"x": values{"y": true}}},
		"literal":               {object(map[string]*hclspec.Spec{"x": literal(`max(1, 2)`)}), `{}`, values{"x": int64(2)}},
		"array":                 {array(&hclspec.Spec{Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Name: "a", Type: "string"}}}, literal("1")), `{"a": "x"}`, []any{"x", int64(1)}},
		"other name than key":   {object(map[string]*hclspec.Spec{"x": {Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Name: "y", Type: "string"}}}}), `{"y": "z"}`, values{"x": "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.New(test.spec)
			must.NoError(t, err)
			encoded, err := s.Encode([]byte(test.config), lookup)
			must.NoError(t, err)
			var got any
			must.NoError(t, schema.Decode(encoded, &got))
			must.Eq(t, test.expected, texts(got))
		})
	}
}

// limits is the schema of a block whose attributes are optional, required and with a default.
func limits() *hclspec.Spec {
	return object(map[string]*hclspec.Spec{
		"enabled": attr("bool", false), "label": attr("string", false), "name": attr("string", true),
		"retries": or(attr("number", false), literal("3")), "paths": attr("list(string)", false),
		"disk": blockValue(object(map[string]*hclspec.Spec{"size": attr("number", false), "kind": attr("string", false)})),
	})
}

// Attributes that an object of a default omits are null, at every level: the podman driver has such
// a schema.
func TestEncode_partialDefaults(t *testing.T) {
	t.Parallel()
	type values = map[string]any
	partial := func(set values) values {
		all := values{"enabled": nil, "label": nil, "name": nil, "retries": nil, "paths": nil, "disk": nil}
		maps.Copy(all, set)
		return all
	}
	for name, test := range map[string]struct {
		spec     *hclspec.Spec
		config   string
		expected any
	}{
		"the block of podman": {
			or(blockValue(object(map[string]*hclspec.Spec{"enabled": or(attr("bool", false), literal("true")), "selinuxlabel": attr("string", false)})), literal("{ enabled = true }")),
			`{}`, values{"enabled": true, "selinuxlabel": nil},
		},
		"one attribute":         {or(blockValue(limits()), literal("{ enabled = true }")), `{}`, partial(values{"enabled": true})},
		"no attribute":          {or(blockValue(limits()), literal("{}")), `{}`, partial(nil)},
		"no object":             {or(blockValue(limits()), literal("null")), `{}`, nil},
		"a nested object":       {or(blockValue(limits()), literal("{ disk = { size = 5 } }")), `{}`, partial(values{"disk": values{"size": int64(5), "kind": nil}})},
		"a nested null":         {or(blockValue(limits()), literal("{ disk = null, label = null }")), `{}`, partial(nil)},
		"other types":           {or(blockValue(limits()), literal(`{ enabled = "true", retries = "5", paths = [1] }`)), `{}`, partial(values{"enabled": true, "retries": int64(5), "paths": []any{"1"}})},
		"a list of objects":     {or(attr("list(object({ a = string, b = bool }))", false), literal(`[{ a = "x" }, { b = false }]`)), `{}`, []any{values{"a": "x", "b": nil}, values{"a": nil, "b": false}}},
		"a list of blocks":      {or(blockList(0, 0, limits()), literal(`[{ label = "a" }, { enabled = false }]`)), `{}`, []any{}}, // no block is an empty list, not a missing one
		"a set of objects":      {or(blockSet(limits()), literal(`[{ label = "a" }]`)), `{"key": [{"name": "x"}]}`, []any{partial(values{"name": "x", "retries": int64(3)})}},
		"a map of objects":      {or(attr("map(object({ a = string, b = list(object({ c = number, d = bool })) }))", false), literal(`{ x = { a = 1 }, y = { b = [{ d = true }] } }`)), `{}`, values{"x": values{"a": "1", "b": nil}, "y": values{"a": nil, "b": []any{values{"c": nil, "d": true}}}}},
		"a tuple":               {or(array(&hclspec.Spec{Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Name: "key", Type: "object({ a = string, b = bool })"}}}), literal(`[{ b = true }]`)), `{}`, []any{nil}},
		"an attribute":          {or(attr("object({ a = string, b = bool })", false), literal("{ b = true }")), `{}`, values{"a": nil, "b": true}},
		"any type":              {or(attr("any", false), literal("{ b = [true, {}] }")), `{}`, values{"b": []any{true, values{}}}},
		"the user's block":      {or(blockValue(limits()), literal("{ enabled = true }")), `{"key": {"name": "x"}}`, partial(values{"name": "x", "retries": int64(3)})},
		"a default in a block":  {blockValue(object(map[string]*hclspec.Spec{"inner": or(blockValue(limits()), literal(`{ label = "a" }`))})), `{"key": {}}`, values{"inner": partial(values{"label": "a"})}},
		"defaults of two lists": {blockList(0, 0, object(map[string]*hclspec.Spec{"inner": or(blockValue(limits()), literal(`{ label = "a" }`))})), `{"key": [{}, {"inner": {"name": "x"}}]}`, []any{values{"inner": partial(values{"label": "a"})}, values{"inner": partial(values{"name": "x", "retries": int64(3)})}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.New(object(map[string]*hclspec.Spec{"key": test.spec}))
			must.NoError(t, err)
			encoded, err := s.Encode([]byte(test.config), lookup)
			must.NoError(t, err)
			var got any
			must.NoError(t, schema.Decode(encoded, &got))
			must.Eq(t, any(values{"key": test.expected}), texts(got))
		})
	}
}

// texts converts the maps of a decoded value, whose keys are of any type.
func texts(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[any]any:
		named := map[string]any{}
		for key, inner := range v {
			named[key.(string)] = texts(inner)
		}
		return named
	case map[string]any:
		for key, inner := range v {
			v[key] = texts(inner)
		}
	}
	return value
}

func TestEncode_fails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec     *hclspec.Spec
		config   string
		expected []string
	}{
		"a missing key":           {command(), `{"args": []}`, []string{`The argument "command" is required`}},
		"no config at all":        {command(), "", []string{`The argument "command" is required`}},
		"a required key is null":  {command(), `{"command": null}`, []string{`The argument "command" is required`}},
		"an unknown key":          {command(), `{"command": "sh", "comand": 1}`, []string{`No argument or block type is named "comand"`}},
		"no schema":               {nil, `{"x": 1}`, []string{`"x"`}},
		"a wrong type":            {command(), `{"command": {"a": 1}}`, []string{`"command"`, "string required"}},
		"a wrong list":            {command(), `{"command": "sh", "args": "x"}`, []string{`"args"`, "list of string required"}},
		"a map for a list":        {object(map[string]*hclspec.Spec{"labels": attr("list(map(string))", false)}), `{"labels": {"a": "b"}}`, []string{`Inappropriate value for attribute "labels": list of map of string required`}},
		"two errors":              {command(), `{"a": 1, "b": 2}`, []string{`"a"`, `"b"`, `"command"`}},
		"an unknown variable":     {command(), `{"command": "sh", "args": ["a", "${attr.none}"]}`, []string{"args[1]: there is no variable ${attr.none}"}},
		"an expression":           {command(), `{"command": "${1 + 1}"}`, []string{"command: there is no variable ${1 + 1}"}},
		"an open brace":           {command(), `{"command": "${x"}`, []string{`command: "${x" has no closing brace`}},
		"a variable in a key":     {command(), `{"${x}": 1}`, []string{"${x}: there is no variable ${x}"}},
		"one key twice":           {object(map[string]*hclspec.Spec{"l": attr("map(string)", false)}), `{"l": {"v": "1", "${meta.my-key}": "2"}}`, []string{`l.v: the key "v" occurs twice`}},
		"a text that grows":       {command(), `{"command": "` + strings.Repeat("${meta.large}", 5000) + `"}`, []string{`command: the text "${meta.large}`, "has more than 1048576 bytes"}},
		"texts that grow":         {command(), `{"command": "sh", "args": ["` + strings.Repeat(`${meta.large}", "`, 5000) + `"]}`, []string{"args[31]: with this text the config has more than 1048576 bytes of text"}},
		"keys that grow":          {command(), `{"${meta.large}": "` + strings.Repeat("${meta.large}", 31) + `", "a${meta.large}": 1}`, []string{"a${meta.large}: with this text the config has"}},
		"no object":               {command(), `["x"]`, []string{"the config: json"}},
		"no JSON":                 {command(), `{"command"`, []string{"the config: unexpected EOF"}},
		"two objects":             {command(), `{"command": "sh"} {}`, []string{"more than one value"}},
		"too deep":                {command(), strings.Repeat(`{"a":`, 20000), []string{"max depth"}},
		"a number without end":    {command(), `{"command": 1e999999999}`, []string{"command: the number is too large"}},
		"a text that is a number": {command(), `{"command": "x", "retries": "1e600000000"}`, []string{"a number is too large"}},
		"too few blocks":          {object(map[string]*hclspec.Spec{"m": blockList(1, 0, object(nil))}), `{}`, []string{"At least 1", "m"}},
		"too many blocks":         {object(map[string]*hclspec.Spec{"m": blockList(0, 1, object(nil))}), `{"m": [{}, {}]}`, []string{"No more than 1", "m"}},
		"two single blocks":       {object(map[string]*hclspec.Spec{"m": blockValue(object(nil))}), `{"m": [{}, {}]}`, []string{"m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.New(test.spec)
			must.NoError(t, err)
			_, err = s.Encode([]byte(test.config), lookup)
			for _, expected := range test.expected {
				must.ErrorContains(t, err, expected)
			}
		})
	}
}

// New returns an error for an invalid schema.
func TestNew_fails(t *testing.T) {
	t.Parallel()
	in := func(part *hclspec.Spec) *hclspec.Spec { return object(map[string]*hclspec.Spec{"key": part}) }
	for name, test := range map[string]struct {
		spec     *hclspec.Spec
		expected string
	}{
		"no name":               {attr("string", false), "a part of it has no name"},
		"no name in an array":   {in(array(attr("string", false))), "key: a part of it has no name"},
		"no type":               {in(attr("", false)), `key: the type ""`},
		"an unknown type":       {in(attr("text", false)), `key: the type "text"`},
		"an empty part":         {in(&hclspec.Spec{}), "key: a part of it is empty"},
		"a nil part":            {in(nil), "key: a part of it is empty"},
		"nothing in a block":    {in(blockValue(nil)), "key: a part of it is empty"},
		"a nil block":           {in(&hclspec.Spec{Block: &hclspec.Spec_BlockList{}}), "key: a part of it is empty"},
		"no labels":             {in(blockMap(object(nil))), "key: a map of blocks has no labels"},
		"any below labels":      {in(blockMap(object(map[string]*hclspec.Spec{"x": attr("any", false)}), "l")), "key: a map of blocks has values of any type"},
		"no expression":         {in(literal("1 +")), `key: the literal "1 +"`},
		"a variable":            {in(literal("x")), `key: the literal "x"`},
		"an unknown function":   {in(literal("exec(1)")), `key: the literal "exec(1)"`},
		"a long literal":        {in(literal(strings.Repeat("(", 1<<20))), "bytes, and may have"},
		"a default that is odd": {in(or(attr("number", false), literal(`"x"`))), "key: the default: a number is required"},
		"no default":            {in(or(attr("number", false), nil)), "key: a part of it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.New(test.spec)
			must.ErrorContains(t, err, test.expected)
		})
	}
}

// Decode fills a struct by its tags.
func TestDecode(t *testing.T) {
	t.Parallel()
	s, err := schema.New(command())
	must.NoError(t, err)
	encoded, err := s.Encode([]byte(`{"command": "sh", "args": ["a"]}`), nil)
	must.NoError(t, err)
	var config struct {
		Command string   `codec:"command"`
		Args    []string `codec:"args"`
		Retries int      `codec:"retries"`
	}
	must.NoError(t, schema.Decode(encoded, &config))
	must.Eq(t, "sh", config.Command)
	must.Eq(t, []string{"a"}, config.Args)
	must.Eq(t, 3, config.Retries)
	must.ErrorContains(t, schema.Decode(encoded[:4], &config), "decoding the config")
	must.ErrorContains(t, schema.Decode(nil, &config), "decoding the config")
}
