package host_test

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
)

// padding is what a plugin sends after each string, such as the rest of a buffer of C.
const padding = "\x00\x00rest"

// padded returns a copy of an answer whose strings end with the padding. The client stores handles
// as they are, so these are not padded.
func padded(answer any) any {
	m, is := answer.(proto.Message)
	if !is {
		return answer
	}
	m = proto.Clone(m)
	pad(m.ProtoReflect())
	return m
}

func pad(m protoreflect.Message) {
	if _, is := m.Interface().(*pb.TaskHandle); is {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			padMap(field, v.Map())
		case field.IsList():
			for i := range v.List().Len() {
				v.List().Set(i, padValue(field, v.List().Get(i)))
			}
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, padValue(field, v))
		default:
			padValue(field, v)
		}
		return true
	})
}

func padMap(field protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []protoreflect.MapKey
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key)
		return true
	})
	for _, key := range keys {
		value := padValue(field.MapValue(), m.Get(key))
		m.Clear(key)
		m.Set(padValue(field.MapKey(), key.Value()).MapKey(), value)
	}
}

func padValue(field protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.String() + padding)
	case protoreflect.MessageKind:
		pad(v.Message())
	}
	return v
}

func paddedError(err error) error {
	if err == nil {
		return nil
	}
	p := status.Convert(err).Proto()
	p.Message += padding
	return status.FromProto(p).Err()
}

type paddedStream struct{ grpc.ServerStream }

func (s paddedStream) SendMsg(m any) error { return s.ServerStream.SendMsg(padded(m)) }
