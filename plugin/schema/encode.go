package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/hcl/v2/hcldec"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/seed-f9cf0b39/nodedrain/cluster/variables"
)

// Encode returns a config as msgpack. The config is a JSON object, or empty for none. lookup
// returns the values of variables. An error names the key or the variable, and means that the
// config is wrong.
func (s *Schema) Encode(config []byte, lookup variables.Lookup) (_ []byte, err error) {
	defer guard(&err)
	config, err = interpolated(config, lookup)
	if err != nil {
		return nil, fmt.Errorf("the config: %w", err)
	}
	file, diags := hcljson.Parse(config, "config")
	if diags.HasErrors() {
		return nil, fmt.Errorf("the config: %w", asError(diags))
	}
	// Without an evaluation context hcldec does not treat strings as templates.
	value, diags := hcldec.Decode(file.Body, s.spec, nil)
	if diags.HasErrors() {
		return nil, fmt.Errorf("the config: %w", asError(diags))
	}
	if err := checkNumbers(value); err != nil {
		return nil, fmt.Errorf("the config: %w", err)
	}
	encoded, err := msgpack.Marshal(value, value.Type())
	if err != nil {
		return nil, fmt.Errorf("encoding the config: %w", err)
	}
	return encoded, nil
}

// interpolated returns a config whose variables are replaced. A missing config counts as an empty
// one.
func interpolated(config []byte, lookup variables.Lookup) ([]byte, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return []byte("{}"), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	// As in HCL files, null means no value, so a required key is then missing.
	maps.DeleteFunc(object, func(_ string, v any) bool { return v == nil })
	if len(object) == 0 {
		return []byte("{}"), nil
	}
	replaced, err := (&texts{lookup: lookup}).replace("", object)
	if err != nil {
		return nil, err
	}
	return json.Marshal(replaced)
}

// texts replaces the variables in the strings of one config. The limit for one string is also the
// limit for all strings together.
type texts struct {
	lookup variables.Lookup
	size   int // of the texts so far, in bytes
}

// interpolate replaces the variables in a text.
func (t *texts) interpolate(text string) (string, error) {
	text, err := variables.Interpolate(text, t.lookup)
	if t.size += len(text); err == nil && t.size > variables.MaxText {
		err = fmt.Errorf("with this text the config has more than %d bytes of text", variables.MaxText)
	}
	return text, err
}

// replace replaces the variables in the strings and keys of a JSON value. The error starts with the
// path of the string.
func (t *texts) replace(path string, value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return nil, fmt.Errorf("%s: the number is too large", path)
		}
	case string:
		text, err := t.interpolate(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return text, nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = t.replace(fmt.Sprintf("%s[%d]", path, i), v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := key
			if path != "" {
				below = path + "." + key
			}
			name, err := t.interpolate(key)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", below, err)
			}
			if _, twice := replaced[name]; twice {
				return nil, fmt.Errorf("%s: the key %.40q occurs twice", below, name)
			}
			if replaced[name], err = t.replace(below, v[key]); err != nil {
				return nil, err
			}
		}
		return replaced, nil
	}
	return value, nil
}

// checkNumbers refuses numbers that do not fit into a float64, because their text could fill the
// memory.
func checkNumbers(value cty.Value) error {
	return cty.Walk(value, func(_ cty.Path, v cty.Value) (bool, error) {
		if v.Type() != cty.Number || v.IsNull() || !v.IsKnown() {
			return true, nil
		}
		if f, _ := v.AsBigFloat().Float64(); math.IsInf(f, 0) {
			return false, errors.New("a number is too large")
		}
		return true, nil
	})
}

// Decode writes an encoded config to out, a pointer. The tag codec:"name" of a struct field is the
// key. Keys without a field are ignored. Fields without a value in the config do not change.
func Decode(encoded []byte, out any) error {
	handle := &codec.MsgpackHandle{}
	handle.RawToString = true
	if err := codec.NewDecoderBytes(encoded, handle).Decode(out); err != nil {
		return fmt.Errorf("decoding the config: %w", err)
	}
	return nil
}
