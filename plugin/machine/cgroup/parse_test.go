package cgroup

import (
	"testing"

	"github.com/shoenig/test/must"
)

func TestParseMount(t *testing.T) {
	t.Parallel()
	m, ok := parseMount("41 31 0:38 / /cg\\040a rw shared:1 master:2 - cgroup2 none rw,nsdelegate\n")
	must.True(t, ok)
	must.Eq(t, mount{point: "/cg a", kind: "cgroup2", options: []string{"rw", "nsdelegate"}}, m)
	for _, line := range []string{
		"", "-", "41 31 0:38 / /cg rw - ext4 /dev/sda rw", "41 31 0:38 /part /cg rw - cgroup2 none rw", "41 31 0:38 / /cg rw - cgroup2",
	} {
		_, ok := parseMount(line)
		must.False(t, ok, must.Sprint(line))
	}
}

func FuzzParseMount(f *testing.F) {
	f.Add("41 31 0:38 / /cg rw shared:1 - cgroup2 none rw")
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := parseMount(line); ok && m.kind != "cgroup" && m.kind != "cgroup2" {
			t.Fatalf("%q is no control group", m.kind)
		}
		value(line, "populated")
	})
}

func TestWeight(t *testing.T) {
	t.Parallel()
	for shares, expected := range map[int64]int64{0: 0, 1: 1, 2: 1, 1024: 39, 262_144: 10_000, 1 << 40: 10_000} {
		must.Eq(t, expected, weight(shares))
	}
}
