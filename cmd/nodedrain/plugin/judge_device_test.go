package plugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// wrongLamps is the configuration of the device plugin in plugin/plugintest/testdata/wrong with a fault.
const wrongLamps = `{
	"args": [%q],
	"unit_millis": 250,
	"setup": ["/bin/sh", "-c", "touch {dir}/lamp-one {dir}/lamp-two {dir}/lamp-three"],
	"config": {"folder": "{dir}"},
	"empty": {"folder": "{dir}/none"},
	"wrong": {"folder": "none"},
	"change": ["/bin/rm", "{dir}/lamp-one"]
}`

// wrongDevices are the stories of [TestPluginTest_wrongDevices].
func wrongDevices() []wrongStory {
	return []wrongStory{
		{"lamps", "", ""},
		{"late-lamps", "V1, V1 empty, V1 cancel", "the first fingerprint came after 2"},
		{"quiet-without-lamps", "V1 empty", "no fingerprint"},
		{"reports-once", "V1 change", "no fingerprint with other devices"},
		{"ends-after-a-change", "V1 change", "the stream ended by itself: Fingerprint: the devices have changed"},
		{"one-stream", "V1 cancel", "there is a stream already"},
		{"id-twice", "V1 ids", "2 devices have this id"},
		{"empty-id", "V1 ids", "its id is empty"},
		{"no-vendor", "V1 ids", "its vendor is empty"},
		{"two-truths", "V1 ids", "the group occurs more than once, with different values"},
		{"new-ids", "V3", "after a restart the plugin has acme/lamp/L1"},
		{"relative-path", "V6", `the path "lib" is not absolute`},
		{"unknown-permissions", "V6", `the permissions "all" have letters other than "rwm"`},
		{"no-variable", "V6", `the variable "A=B"`},
		{"takes-any-id", "V7", "Reserve takes the ids"},
		{"takes-the-first-id-only", "V7", `Reserve takes the ids ["lamp-one" "no-such-device"]`},
		{"panics-at-strangers", "V7", "panic: this lamp does not exist"},
		{"refuses-none", "V7 none", "there is nothing to reserve"},
		{"positions", "V3 change", `after a change of the devices, the id "0" has the path "/dev/lamps/lamp-three", which the id "1" had before`},
		{"gives-nothing", "V6 something", `Reserve of "lamp-one" returns nothing`},
		{"gives-all-of-short-ids", "V7 alone", `the answers for "one" and "three" are the same, and name all devices`},
		{"gives-all", "V7 others, V7 alone", `the answer for "lamp-one" names the device "lamp-three"`},
		{"gives-another", "V3 change, V7 others", "names the device"},
		{"has-owners", "V7 repeat", "the lamp is in use"},
		{"counts", "V7 repeat", "is another one"},
		{"one-at-a-time", "V7 several", "one lamp at a time"},
		{"one-path", "V7 several", `the path "/dev/lamp" of the task different device files`},
		{"measures-once", "V8", "no statistics after 1 reports"},
		{"measures-strangers", "V8", `the device "stranger" of the kind acme/lamp/L1`},
		{"cannot-measure", "V8", "the meter is broken"},
		{"takes-any-config", "V9", "the plugin takes a wrong config"},
	}
}

// The command names the rules that a wrong device plugin breaks, and no others.
//
//race:skip its programs do not have the detector
func TestPluginTest_wrongDevices(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	for _, story := range wrongDevices() {
		t.Run(story.fault, func(t *testing.T) {
			t.Parallel()
			story.judge(t, path, wrongLamps, "device", 0)
		})
	}
}

// A check that cannot fail is a defect: each rule of devices is broken by a wrong plugin, and so are
// the rules of drivers that a double cannot break. The suites break the others.
//
//race:skip its programs do not have the detector
func TestPluginTest_eachRuleIsBroken(t *testing.T) {
	t.Parallel()
	var broken []string
	for _, story := range slices.Concat(wrongUsers(), wrongDevices()) {
		broken = append(broken, strings.Split(story.fails, ", ")...)
	}
	for _, rule := range allRules() {
		if rule.ID[0] == 'V' || rule.ID == "D4 user" || rule.ID == "D4 environment" {
			must.SliceContains(t, broken, rule.ID)
		}
	}
}

// What the harness cannot do fails its rule, unless the file skips it with a reason.
func TestPluginTest_devicesWithoutAFile(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	config := written(t, `{"args": ["lamps"], "unit_millis": 250, "config": {"folder": "{dir}"}, "skips": {"V9": "no config is wrong"}}`)
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
	config = written(t, `{"args": ["lamps"], "config": {"folder": "{dir}"}, "tasks": {}}`)
	code, _, errs = command(t.Context(), "plugin test -config "+config+" "+path)
	must.EqOp(t, 2, code)
	must.StrContains(t, errs, `unknown field "tasks"`)
}

// The device plugin to copy keeps all rules.
//
//race:skip its programs do not have the detector
func TestPluginTest_exampleDevice(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../examples/device")
	code, out, errs := command(t.Context(), "plugin test -config ../../../examples/device/test.json "+path)
	must.Zero(t, code, must.Sprint(out, errs))
	must.StrContains(t, out, "17 passed, 0 failed, 0 skipped, 0 warnings")
}
