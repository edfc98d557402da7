package plugin

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"
)

// devices is the configuration of examples/device, with two more keys.
const devices = `{
	"unit_millis": 250,
	"setup": ["/bin/sh", "-c", "echo one > {dir}/one; echo two > {dir}/two; echo three > {dir}/three"],
	"config": {"device": [{"name": "sample", "paths": ["{dir}/*"]}]},
	"change": ["/bin/rm", "{dir}/two"],
	"empty": %s,
	"wrong": %s
}`

// The command names the rules that a wrong device plugin breaks, and no others. Package devicetest
// breaks each rule over its double.
//
//race:skip its programs do not have the detector
func TestPluginTest_wrongDevices(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../examples/device")
	const none, relative, all = `{}`, `{"device": [{"name": "sample", "paths": ["dev/null"]}]}`, `{"device": [{"name": "sample", "paths": ["{dir}/*"]}]}`
	for name, story := range map[string]struct{ empty, wrong, fails, happened string }{
		"none":                  {none, relative, "", ""},
		"has a device too many": {all, relative, "V1 empty", "the plugin has devices: local/file/sample"},
		"takes any config":      {none, all, "V9", "the plugin takes a wrong config"},
		"breaks two rules":      {relative, none, "V1 empty, V9", `the path "dev/null" is not absolute`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrongStory{"", story.fails, story.happened}.judge(t, path, fmt.Sprintf(devices, story.empty, story.wrong), "device", 0)
		})
	}
}

// What the harness cannot do fails its rule, unless the file skips it with a reason.
func TestPluginTest_devicesWithoutAFile(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../examples/device")
	config := written(t, `{"unit_millis": 250, "config": {}, "skips": {"V9": "no config is wrong"}}`)
	code, out, _ := command(t.Context(), "plugin test -run V1,V7,V9 -config "+config+" "+path)
	must.One(t, code)
	for _, want := range []string{
		"V1            passed   The first fingerprint comes at once.\n",
		"V1 empty      warning  A plugin without a device reports an empty list at once.\n",
		"    happened  the harness has no plugin that finds no device\n",
		"    happened  the harness cannot change the devices\n",
		"    expected  a command in \"change\", or an entry in \"skips\"\n",
		"    expected  a device, or an entry in \"skips\"\n    happened  the plugin has no device\n",
		"V9            skipped  A wrong config of the plugin is refused.\n    why       no config is wrong\n",
	} {
		must.StrContains(t, out, want)
	}
	code, _, errs := command(t.Context(), "plugin test -run D13 -config "+config+" "+path)
	must.EqOp(t, 2, code)
	must.StrContains(t, errs, `The plugin is a device plugin, which has no rule "D13"`)
	config = written(t, `{"tasks": {}, "skips": {}}`)
	code, _, errs = command(t.Context(), "plugin test -config "+config+" "+path)
	must.EqOp(t, 2, code)
	must.StrContains(t, errs, `unknown field "tasks"`)
}
