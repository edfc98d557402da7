package schema_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
)

// No schema of a plugin and no config of a user makes the package panic. What it encodes can be
// decoded.
func FuzzEncode(f *testing.F) {
	for _, spec := range []*hclspec.Spec{
		command(),
		object(map[string]*hclspec.Spec{
			"list": blockList(0, 2, or(command(), literal("{}"))), "set": blockSet(object(nil)),
			"map": blockMap(command(), "a", "b"), "attrs": blockAttrs("any"), "value": blockValue(array(literal("1"))),
		}),
	} {
		encoded, err := proto.Marshal(spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, []byte(`{"command": "${attr.kernel.name}", "args": [1], "list": [{"command": "x"}]}`))
		f.Add(encoded, []byte(`{"map": {"a": {"b": {"command": 1e3}}}, "attrs": {"x": [null]}, "value": {}}`))
	}
	f.Fuzz(func(t *testing.T, encoded, config []byte) {
		var spec hclspec.Spec
		if proto.Unmarshal(encoded, &spec) != nil {
			t.Skip()
		}
		s, err := schema.New(&spec)
		if err != nil {
			return
		}
		packed, err := s.Encode(config, lookup)
		if err != nil {
			return
		}
		var value any
		if err := schema.Decode(packed, &value); err != nil {
			t.Fatalf("%x: %v", packed, err)
		}
	})
}

// Arbitrary bytes decode to a value or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x81\xa1x\x01"))
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(_ *testing.T, encoded []byte) {
		var config struct {
			Text string         `codec:"text"`
			List []int          `codec:"list"`
			Map  map[string]any `codec:"map"`
		}
		_ = schema.Decode(encoded, &config)
	})
}
