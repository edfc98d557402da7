//race:skip one goroutine
package environment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
)

func TestOf(t *testing.T) {
	t.Parallel()
	client := []string{
		"PATH=/bin", "LD_LIBRARY_PATH=/opt/lib", "https_proxy=http://proxy:1", "NO_PROXY=local", "LC_TIME=C", "HOME=/root", "TZ=",
		"NOMAD_TOKEN=secret", "AWS_SECRET_ACCESS_KEY=secret", "LCX=1", "path=/no", "PATHS=/no", "INVALID",
	}
	must.Eq(t, []string{
		"A=b", "HOME=/srv", "LC_TIME=C", "LD_LIBRARY_PATH=/opt/lib", "NO_PROXY=local", "PATH=/bin", "TZ=", "https_proxy=http://proxy:1",
	}, environment.Of(client, map[string]string{"A": "b", "HOME": "/srv"}))
	must.SliceEmpty(t, environment.Of(nil, nil))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	must.NoError(t, environment.Check(nil))
	must.NoError(t, environment.Check(map[string]string{"_a1": "", "B": "x=y\n"}))
	many := map[string]string{}
	for i := range environment.MaxVariables + 1 {
		many[fmt.Sprintf("V%d", i)] = ""
	}
	for expected, own := range map[string]map[string]string{
		`"" is not the name of a variable`:                    {"": "x"},
		`"a-b" is not the name of a variable`:                 {"a-b": "x"},
		`"1a" is not the name of a variable`:                  {"1a": "x"},
		`"a=b" is not the name of a variable`:                 {"a=b": "x"},
		"the largest size is 128":                             {strings.Repeat("n", 129): "x"},
		"the client sets the variable PLUGIN_CLIENT_CERT for": {"PLUGIN_CLIENT_CERT": "x"},
		"the variable A has 32769 bytes":                      {"A": strings.Repeat("v", 32769)},
		"the variable A has a NUL byte":                       {"A": "a\x00b"},
		"101 variables are set":                               many,
		"the variables have 75003 bytes":                      {"A": strings.Repeat("v", 25000), "B": strings.Repeat("v", 25000), "C": strings.Repeat("v", 25000)},
	} {
		must.ErrorContains(t, environment.Check(own), expected)
	}
}
