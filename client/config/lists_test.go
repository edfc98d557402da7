//race:skip one goroutine
package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
)

// list is a list or a map of the configuration.
type list struct {
	// field is the path of the field in [config.Config].
	field string
	// write returns the file with these elements.
	write func(elements []string) string
	good  []string
	// bad are elements that are refused, and a part of the error.
	bad map[string]string
}

func lists() []list {
	const dir = "data_dir = \"/d\"\n"
	within := func(before, separator, after string) func([]string) string {
		return func(elements []string) string { return dir + before + strings.Join(elements, separator) + after }
	}
	return []list{
		{
			field: "Servers.Addresses", write: within("servers {\n addresses = [", ", ", "]\n}"),
			good: []string{`"http://127.0.0.1:1"`, `"http://[::1]:2"`, `"http://localhost:3"`},
			bad: map[string]string{
				`"https://10.0.0.1:4646"`: "ca_file", `"https://127.0.0.1:4646"`: "ca_file", `"http://10.0.0.1:4646"`: "no TLS",
				`"10.0.0.1:4646"`: "addresses", `"ftp://127.0.0.1"`: "must begin with http", `"http://"`: "no host", `"http://a:b@127.0.0.1"`: "may have a scheme",
				`""`: "must begin with http", `null`: "null", `{}`: "string required",
			},
		},
		{
			field: "Meta", write: within("meta = {\n", "\n", "\n}"),
			good: []string{`a = "1"`, `b = "2"`, `c = 3`},
			bad:  map[string]string{`x = [1]`: "string required", `x = null`: "null value"},
		},
		{
			// Bug: the block of the reference's configurations was refused.
			field: "Meta", write: within("meta {\n", "\n", "\n}"),
			good: []string{`a = "1"`, `b = "2"`, `c = 3`},
			bad:  map[string]string{`x = [1]`: "string required", `x = null`: "null value", "}\nmeta {": "twice"},
		},
		{
			field: "ReservedPorts", write: within("reserved {\n reserved_ports = \"", ",", "\"\n}"),
			good: []string{"22", "80-90", "443"},
			bad:  map[string]string{"0": `"0" must be a port`, "9-8": "must be a port", "ssh": "must be a port", "65536": "must be a port"},
		},
		{
			field: "ReservedCores", write: within("reserved {\n cores = \"", ",", "\"\n}"),
			good: []string{"0", "2-3", "7"},
			bad:  map[string]string{"-1": "must be a core", "9-8": "must be a core", "all": "must be a core", "65536": "must be a core"},
		},
		{
			field: "Plugins", write: within("", "\n", ""),
			good: []string{"plugin \"a\" { }", "plugin \"b\" { }", "plugin \"c\" {\n enabled = false\n}"},
			bad: map[string]string{
				`plugin "../x" { }`: "not the name of a file", `plugin "" { }`: "plugin", `plugin "b" { }`: "two blocks",
				"plugin \"x\" {\n start_timeout = \"0s\"\n}": "start_timeout", "plugin \"x\" {\n args = 1\n}": "args", `plugin { }`: "name",
			},
		},
		{
			field: "Plugins.Env", write: within("plugin \"p\" {\n env {\n", "\n", "\n}\n}"),
			good: []string{`A = "1"`, `B = 2`, `C = ""`},
			bad: map[string]string{
				`a-b = "x"`: "not the name of a variable", `PLUGIN_MIN_PORT = 1`: "PLUGIN_MIN_PORT", `X = null`: "no value", `X = [1]`: "string required", `X = y`: "y",
			},
		},
	}
}

// Each element of each list is checked: a bad one is refused at the first, a middle and the last place.
// Bug: no test had a good address behind one with https that needs ca_file.
func TestParse_badElement(t *testing.T) {
	t.Parallel()
	for _, l := range lists() {
		_, err := config.Parse("c.hcl", []byte(l.write(l.good)))
		must.NoError(t, err, must.Sprint(l.field))
		for bad, why := range l.bad { //lint:order each is a separate file
			for at := range len(l.good) + 1 {
				t.Run(fmt.Sprint(l.field, " ", bad, " at ", at), func(t *testing.T) {
					t.Parallel()
					_, err := config.Parse("c.hcl", []byte(l.write(slices.Insert(slices.Clone(l.good), at, bad))))
					must.ErrorContains(t, err, why)
				})
			}
		}
	}
}

// The table of TestParse_badElement has all lists and maps of the configuration.
func TestParse_badElement_allLists(t *testing.T) {
	t.Parallel()
	var tested []string
	for _, l := range lists() {
		tested = append(tested, l.field)
	}
	found := fieldsOf(reflect.TypeFor[config.Config](), "")
	slices.Sort(tested)
	slices.Sort(found)
	must.Eq(t, found, slices.Compact(tested))
}

// fieldsOf returns the paths of the lists and maps in a type.
func fieldsOf(in reflect.Type, path string) (fields []string) {
	switch {
	case in == reflect.TypeFor[json.RawMessage](): // the plugin checks it
	case in.Kind() == reflect.Struct:
		for i := range in.NumField() {
			fields = append(fields, fieldsOf(in.Field(i).Type, strings.TrimPrefix(path+"."+in.Field(i).Name, "."))...)
		}
	case in.Kind() == reflect.Slice || in.Kind() == reflect.Map:
		fields = append(fieldsOf(in.Elem(), path), path)
	}
	return fields
}
