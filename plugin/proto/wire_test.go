package proto_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"google.golang.org/protobuf/reflect/protoreflect"

	// A program with the compatible client of the API registers all messages without a clash.
	_ "github.com/hashicorp/nomad/api"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/base"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

var update = flag.Bool("update", false, "write the golden file")

// Each name and number that plugins see is in the golden file. A line of it may be added. A line
// that changes or goes breaks released plugins.
func TestWire(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, file := range []protoreflect.FileDescriptor{
		base.File_plugin_proto_base_base_proto,
		driver.File_plugin_proto_driver_driver_proto,
		device.File_plugin_proto_device_device_proto,
		hclspec.File_plugin_proto_hclspec_hclspec_proto,
		structs.File_plugin_proto_structs_structs_proto,
	} {
		for s := range each(file.Services()) {
			for m := range each(s.Methods()) {
				lines = append(lines, fmt.Sprintf("rpc /%s/%s (%s) (%s)", s.FullName(), m.Name(),
					streamed(m.Input(), m.IsStreamingClient()), streamed(m.Output(), m.IsStreamingServer())))
			}
		}
		lines = append(lines, enums(file.Enums())...)
		lines = append(lines, fields(file.Messages())...)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "wire.txt")
	if *update {
		must.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	expected, err := os.ReadFile(golden)
	must.NoError(t, err)
	must.Eq(t, string(expected), got)
}

// descriptors is a list of descriptors.
type descriptors[D any] interface {
	Len() int
	Get(i int) D
}

func each[D any](list descriptors[D]) func(yield func(D) bool) {
	return func(yield func(D) bool) {
		for i := range list.Len() {
			if !yield(list.Get(i)) {
				return
			}
		}
	}
}

func streamed(message protoreflect.MessageDescriptor, stream bool) string {
	if stream {
		return "stream " + string(message.FullName())
	}
	return string(message.FullName())
}

func enums(list protoreflect.EnumDescriptors) (lines []string) {
	for e := range each(list) {
		for v := range each(e.Values()) {
			lines = append(lines, fmt.Sprintf("enum %s %d %s", e.FullName(), v.Number(), v.Name()))
		}
	}
	return lines
}

func fields(list protoreflect.MessageDescriptors) (lines []string) {
	for m := range each(list) {
		if m.IsMapEntry() {
			continue
		}
		lines = append(lines, "message "+string(m.FullName()))
		for f := range each(m.Fields()) {
			lines = append(lines, fmt.Sprintf("field %s %d %s %s", m.FullName(), f.Number(), f.Name(), kind(f)))
		}
		lines = append(lines, enums(m.Enums())...)
		lines = append(lines, fields(m.Messages())...)
	}
	return lines
}

// kind returns the type of a field, as a .proto file has it.
func kind(f protoreflect.FieldDescriptor) string {
	if f.IsMap() {
		return fmt.Sprintf("map<%s,%s>", kind(f.MapKey()), kind(f.MapValue()))
	}
	name := f.Kind().String()
	if f.Message() != nil {
		name = string(f.Message().FullName())
	}
	if f.Enum() != nil {
		name = string(f.Enum().FullName())
	}
	if f.IsList() {
		return "repeated " + name
	}
	return name
}
