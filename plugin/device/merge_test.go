package device_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

func part(name string, r device.Reservation) device.Part {
	return device.Part{For: name, Reservation: r}
}

func env(pairs ...string) device.Reservation {
	r := device.Reservation{Env: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		r.Env[pairs[i]] = pairs[i+1]
	}
	return r
}

func mounts(all ...driver.Mount) device.Reservation { return device.Reservation{Mounts: all} }

func files(all ...driver.Device) device.Reservation { return device.Reservation{Devices: all} }

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		a, b     device.Reservation
		expected device.Reservation
		refuse   string
	}{
		{name: "nothing"},
		{name: "variables", a: env("A", "1"), b: env("B", "2"), expected: env("A", "1", "B", "2")},
		{name: "a variable with one value", a: env("A", "1"), b: env("A", "1"), expected: env("A", "1")},
		{name: "a variable with two values", a: env("A", "1"), b: env("A", "2"), refuse: `the devices a and b give the variable "A" different values: one task cannot use both`},
		{
			name: "mounts come in the order of their paths",
			a:    mounts(driver.Mount{TaskPath: "/a/b", HostPath: "/2"}), b: mounts(driver.Mount{TaskPath: "/a/", HostPath: "/1", ReadOnly: true}),
			expected: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}, driver.Mount{TaskPath: "/a/b", HostPath: "/2"}),
		},
		{
			name: "a mount that one writes",
			a:    mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}), b: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}),
			expected: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}),
		},
		{
			name: "a mount that the first one writes",
			a:    mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}), b: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}),
			expected: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}),
		},
		{
			name: "a mount that both read",
			a:    mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}), b: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}),
			expected: mounts(driver.Mount{TaskPath: "/a", HostPath: "/1", ReadOnly: true}),
		},
		{
			name: "two mounts at one path",
			a:    mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}), b: mounts(driver.Mount{TaskPath: "/a/.", HostPath: "/2"}),
			refuse: `the path "/a" of the task different mounts`,
		},
		{
			name:   "one part with two mounts at one path",
			a:      mounts(driver.Mount{TaskPath: "/a", HostPath: "/1"}, driver.Mount{TaskPath: "/a", HostPath: "/2"}),
			refuse: `the devices a give the path "/a"`,
		},
		{
			name: "permissions of both",
			a:    files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1", Permissions: "m"}), b: files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1", Permissions: "r"}),
			expected: files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1", Permissions: "rm"}),
		},
		{
			name: "the default permissions are all",
			a:    files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1"}), b: files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1", Permissions: "r"}),
			expected: files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1"}),
		},
		{
			name: "two device files at one path",
			a:    files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1"}), b: files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/2"}),
			refuse: `the path "/dev/a" of the task different device files`,
		},
		{
			name: "a mount over a device file",
			a:    files(driver.Device{TaskPath: "/dev/a", HostPath: "/dev/1"}), b: mounts(driver.Mount{TaskPath: "/dev/a", HostPath: "/1"}),
			refuse: `the path "/dev/a" of the task a mount and a device file`,
		},
		{name: "a variable without a name", a: env("", "1"), refuse: `the reservation of a: the variable ""`},
		{name: "a variable that is two", a: env("A=B", "1"), refuse: "must not be empty or contain"},
		{name: "a value with a zero byte", a: env("A", "\x00"), refuse: "the value contains a zero byte"},
		{name: "a relative mount", a: mounts(driver.Mount{TaskPath: "a", HostPath: "/1"}), refuse: `the path "a" is not absolute`},
		{name: "a mount from nothing", a: mounts(driver.Mount{TaskPath: "/a"}), refuse: `the path "" is not absolute`},
		{name: "a mount that leads upwards", a: mounts(driver.Mount{TaskPath: "/a/../../etc", HostPath: "/1"}), refuse: "leads upwards"},
		{name: "a long path", a: mounts(driver.Mount{TaskPath: "/" + strings.Repeat("a", 4096), HostPath: "/1"}), refuse: "has 4097 bytes"},
		{name: "a path with a zero byte", a: files(driver.Device{TaskPath: "/a\x00", HostPath: "/1"}), refuse: "zero byte"},
		{name: "unknown permissions", a: files(driver.Device{TaskPath: "/a", HostPath: "/1", Permissions: "rx"}), refuse: `the permissions "rx" have letters other than "rwm"`},
		{name: "too many mounts", a: mounts(make([]driver.Mount, 4097)...), refuse: "it has 4097 mounts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := device.Merge([]device.Part{part("a", c.a), part("b", c.b)})
			if c.refuse != "" {
				must.ErrorContains(t, err, c.refuse)
				must.Eq(t, device.Reservation{}, got)
				return
			}
			must.NoError(t, err)
			must.Eq(t, c.expected, got)
		})
	}
}

// A merge does not depend on the order of its parts, and a merge of the merge changes nothing.
func TestMerge_random(t *testing.T) {
	t.Parallel()
	path := rapid.SampledFrom([]string{"/a", "/a/b", "/c", "/d/"})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) device.Part {
			p := part(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "for"), env())
			if rapid.Bool().Draw(t, "variable") {
				p.Env["A"] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "value")
			}
			if rapid.Bool().Draw(t, "mount") {
				p.Mounts = []driver.Mount{{TaskPath: path.Draw(t, "path"), HostPath: path.Draw(t, "path"), ReadOnly: rapid.Bool().Draw(t, "ro")}}
			}
			if rapid.Bool().Draw(t, "file") {
				p.Devices = []driver.Device{{TaskPath: path.Draw(t, "path"), HostPath: path.Draw(t, "path"), Permissions: rapid.SampledFrom([]string{"", "r", "wm"}).Draw(t, "permissions")}}
			}
			return p
		}), 0, 4).Draw(t, "parts")
		whole, err := device.Merge(parts)
		other, otherErr := device.Merge(rapid.Permutation(parts).Draw(t, "order"))
		must.Eq(t, err == nil, otherErr == nil)
		must.Eq(t, whole, other)
		if err != nil {
			return
		}
		again, err := device.Merge([]device.Part{part("x", whole), part("y", whole)})
		must.NoError(t, err)
		must.Eq(t, whole, again)
		for _, p := range parts {
			for name := range maps.Keys(p.Env) {
				must.Eq(t, p.Env[name], whole.Env[name])
			}
		}
	})
}
