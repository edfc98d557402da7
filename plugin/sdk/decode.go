package sdk

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// Decode reads a config that the host has encoded with a schema into a struct whose fields have the
// tag `codec:"KEY"`. A key that the user left out does not change its field, so a default may be
// set before the call. An unknown key is an error, and so is a value that the field cannot hold, such
// as 1.5 in an int. The error names the key. Empty bytes mean that there are no keys.
func Decode(config []byte, into any) error {
	if len(config) == 0 {
		return nil
	}
	handle := &codec.MsgpackHandle{}
	handle.RawToString = true
	handle.BasicHandle.TimeNotBuiltin = true
	handle.ErrorIfNoField = true
	r := bytes.NewReader(config)
	var values map[string]any
	handle.MapType = reflect.TypeOf(values)
	if err := codec.NewDecoder(r, handle).Decode(&values); err != nil {
		return fmt.Errorf("decode the config: %w", err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return fmt.Errorf("decode the config: %d bytes after its end", r.Len()+1)
	}
	// A host sends each key of the schema, and nil for keys that the user left out. The codec would
	// clear their fields.
	present, err := Encode(withoutNil(values))
	if err != nil {
		return fmt.Errorf("decode the config: %w", err)
	}
	if err := codec.NewDecoderBytes(present, handle).Decode(into); err != nil {
		return fmt.Errorf("decode the config: %w", named(err, withoutNil(values), into, handle))
	}
	return nil
}

// named adds the key to an error of a decoder. It finds the key by decoding each key alone.
func named(err error, values map[string]any, into any, handle codec.Handle) error {
	kind := reflect.TypeOf(into)
	if kind == nil || kind.Kind() != reflect.Pointer {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		alone, encodeErr := Encode(map[string]any{key: values[key]})
		if encodeErr != nil {
			continue
		}
		if err := codec.NewDecoderBytes(alone, handle).Decode(reflect.New(kind.Elem()).Interface()); err != nil {
			return fmt.Errorf("the key %q: %w", key, err)
		}
	}
	return err
}

// withoutNil returns the values that are not nil, also in nested objects.
func withoutNil(values map[string]any) map[string]any {
	present := map[string]any{}
	for key, value := range values {
		if value != nil {
			present[key] = presentIn(value)
		}
	}
	return present
}

// presentIn is withoutNil for a value. It keeps a nil in a list, because it is an element.
func presentIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return withoutNil(v)
	case []any:
		for i := range v {
			v[i] = presentIn(v[i])
		}
	}
	return value
}

// Encode encodes a config as a host does, for tests of a driver.
func Encode(config any) ([]byte, error) {
	handle := &codec.MsgpackHandle{}
	handle.WriteExt = true
	handle.BasicHandle.TimeNotBuiltin = true
	var b bytes.Buffer
	err := codec.NewEncoder(&b, handle).Encode(config)
	return b.Bytes(), err
}
