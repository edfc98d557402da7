package shims

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/attributes"
)

// An entry is three parts:
//
//	byte 0    the message's type, with IgnorableFlag among its bits
//	byte 1    the lowest cluster version that understands the message
//	the rest  the message, as one canonical msgpack value: structs are maps from
//	          field names, times are UTC to the nanosecond, nil is not empty
//
// A field that is missing in the entry is zero. An entry with an unknown field is broken,
// because a server that ignored the field would have another state than the other servers.
// So a new field needs a new cluster version: doc.go describes how to add one.

const headerSize = 2

// usualSize is the initial capacity of an encoded entry, in bytes. Most entries fit.
const usualSize = 1 << 10

// maxDepth bounds the nesting of decoded messages. The deepest message is a plan: its job
// has groups, which have tasks, which have resources.
const maxDepth = 32

// ErrBroken means that [Decode] found an entry that no server has written. The FSM must stop.
var ErrBroken = errors.New("broken raft entry")

// handle is the msgpack configuration. It never changes. All calls share it because the codec
// caches its analysis of types in it.
var handle = newHandle()

func newHandle() *codec.MsgpackHandle {
	h := new(codec.MsgpackHandle)
	h.Canonical = true
	h.WriteExt = true // times as the timestamp extension
	h.ErrorIfNoField = true
	h.MaxDepth = maxDepth
	return h
}

// Encode returns the message as the data of a raft entry. Equal messages give equal data. An
// error means that the message lacks a required part or cannot be encoded.
func Encode(m Message) ([]byte, error) {
	if m == nil || newMessage(m.Type()) == nil {
		return nil, errors.New("encoding an entry: no message")
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.Type(), err)
	}
	body := make([]byte, 0, usualSize)
	if err := codec.NewEncoderBytes(&body, handle).Encode(packed(m)); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", m.Type(), err)
	}
	data := make([]byte, 0, headerSize+len(body))
	return append(append(data, byte(m.Type()), byte(neededVersion(m))), body...), nil
}

// Decode returns the message of a raft entry. It returns nil and no error for an unknown
// type that is ignorable. An error wraps
// [cluster.ErrVersion] if the entry needs a cluster version that this build does not
// understand, and [ErrBroken] otherwise.
func Decode(data []byte) (Message, error) {
	if len(data) < headerSize {
		return nil, fmt.Errorf("%w: %d bytes are no entry", ErrBroken, len(data))
	}
	t, version, body := MessageType(data[0]), cluster.Version(data[1]), data[headerSize:]
	m := newMessage(t)
	if m == nil && t.Ignorable() {
		return nil, nil
	}
	if version > cluster.MaxVersion {
		return nil, fmt.Errorf("%s: %w", t, cluster.Require(version))
	}
	if m == nil {
		return nil, fmt.Errorf("%w: unknown type %d", ErrBroken, t)
	}
	if err := decodeBody(body, m); errors.Is(err, cluster.ErrVersion) {
		return nil, fmt.Errorf("%s: %w", t, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBroken, t, err)
	}
	if needed := neededVersion(m); version != needed {
		return nil, fmt.Errorf("%w: %s of version %d names version %d", ErrBroken, t, needed, version)
	}
	return m, nil
}

func decodeBody(body []byte, m Message) error {
	form := packed(m)
	decoder := codec.NewDecoderBytes(body, handle)
	if err := decoder.Decode(form); err != nil {
		return err
	}
	if extra := len(body) - decoder.NumBytesRead(); extra > 0 {
		return fmt.Errorf("%d bytes follow the message", extra)
	}
	if m, ok := m.(*NodeRegister); ok {
		if err := attributes.OfMessage(body, m.Node); err != nil {
			return err
		}
	}
	if form, ok := form.(packedForm); ok {
		if err := form.unpackInto(m); err != nil {
			return err
		}
	}
	return m.check()
}
