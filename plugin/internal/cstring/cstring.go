// Package cstring cuts the strings that plugins send at the first NUL. Plugins copy strings from
// libraries of C, and some send the whole buffer: the text, a NUL, and the rest of the buffer. The
// text is what the author of the plugin meant.
//
// The connections of this package cut the strings of all messages and the texts of all errors, so
// that no other code must. They do not change bytes fields, and no message of an exempt type: a
// client stores such a message and sends it back as it is.
package cstring

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// DialOptions returns the options of a connection whose answers are cut, except messages of the
// exempt types.
func DialOptions(exempt ...protoreflect.FullName) []grpc.DialOption {
	c := cutter(exempt)
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream)}
}

// cutter cuts messages. Its elements are the names of exempt types.
type cutter []protoreflect.FullName

func (c cutter) unary(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, answer, conn, options...)
	c.any(answer)
	return cutError(err)
}

func (c cutter) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, cutError(err)
	}
	return &stream{s, c}, nil
}

// stream cuts the messages that it receives.
type stream struct {
	grpc.ClientStream
	cut cutter
}

// RecvMsg implements grpc.ClientStream.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.cut.any(m)
	}
	return cutError(err)
}

// cutError cuts the text of a plugin's error. Other errors stay as they are, such as io.EOF.
func cutError(err error) error {
	s, is := status.FromError(err)
	if err == nil || !is || !strings.Contains(s.Message(), "\x00") {
		return err
	}
	p := s.Proto()
	p.Message = text(p.GetMessage())
	return status.FromProto(p).Err()
}

func (c cutter) any(m any) {
	if p, is := m.(proto.Message); is {
		c.message(p.ProtoReflect())
	}
}

func (c cutter) message(m protoreflect.Message) {
	if slices.Contains(c, m.Descriptor().FullName()) {
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			c.mapping(field, v.Map())
		case field.IsList():
			for i := range v.List().Len() {
				if cut, changed := c.value(field, v.List().Get(i)); changed {
					v.List().Set(i, cut)
				}
			}
		default:
			if cut, changed := c.value(field, v); changed {
				m.Set(field, cut)
			}
		}
		return true
	})
}

// mapping cuts the keys and values of a map. If keys are equal after the cut, the value of the
// least key stays.
func (c cutter) mapping(field protoreflect.FieldDescriptor, m protoreflect.Map) {
	var long []string
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		if cut, changed := c.value(field.MapValue(), v); changed {
			m.Set(key, cut)
		}
		if field.MapKey().Kind() == protoreflect.StringKind && strings.Contains(key.String(), "\x00") {
			long = append(long, key.String())
		}
		return true
	})
	slices.Sort(long)
	for _, key := range long {
		old, cut := protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text(key)).MapKey()
		if !m.Has(cut) {
			m.Set(cut, m.Get(old))
		}
		m.Clear(old)
	}
}

// value returns a value with its strings cut, and whether it must be stored. Messages change in
// place.
func (c cutter) value(field protoreflect.FieldDescriptor, v protoreflect.Value) (protoreflect.Value, bool) {
	switch field.Kind() {
	case protoreflect.StringKind:
		if strings.Contains(v.String(), "\x00") {
			return protoreflect.ValueOfString(text(v.String())), true
		}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		c.message(v.Message())
	}
	return v, false
}

func text(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}
