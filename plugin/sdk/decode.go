package sdk

import (
	"bytes"
	"fmt"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// Decode reads a config that the host has encoded with a schema into a struct whose fields have the
// tag `codec:"KEY"`. Keys without a value leave their field as it is. An unknown key is an error.
// Empty bytes have no keys.
func Decode(config []byte, into any) error {
	if len(config) == 0 {
		return nil
	}
	handle := &codec.MsgpackHandle{}
	handle.RawToString = true
	handle.BasicHandle.TimeNotBuiltin = true
	handle.ErrorIfNoField = true
	r := bytes.NewReader(config)
	if err := codec.NewDecoder(r, handle).Decode(into); err != nil {
		return fmt.Errorf("decode the config: %w", err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return fmt.Errorf("decode the config: %d bytes after its end", r.Len()+1)
	}
	return nil
}

// Encode writes a config like a host: for tests of a driver.
func Encode(config any) ([]byte, error) {
	handle := &codec.MsgpackHandle{}
	handle.WriteExt = true
	handle.BasicHandle.TimeNotBuiltin = true
	var b bytes.Buffer
	err := codec.NewEncoder(&b, handle).Encode(config)
	return b.Bytes(), err
}
