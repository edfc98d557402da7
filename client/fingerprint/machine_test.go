//race:skip one goroutine
package fingerprint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/fingerprint"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// machine is a root folder with the files.
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

func TestTake(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{
		"proc/meminfo":   "MemTotal:        2097160 kB\nMemFree:         1 kB\n",
		"proc/cpuinfo":   "processor\t: 0\nmodel name\t: A CPU: fast\ncpu MHz\t\t: 2399.998\n\nprocessor\t: 1\nmodel name\t: another\n",
		"etc/os-release": "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nID=debian\n",
	})
	m, err := fingerprint.Take(fingerprint.Options{Root: root, DataDir: root, Version: "v1.2.3"})
	must.NoError(t, err)
	hostname, err := os.Hostname()
	must.NoError(t, err)
	for name, expected := range map[string]string{
		"cpu.arch": runtime.GOARCH, "cpu.modelname": "A CPU: fast", "cpu.frequency": "2399", "cpu.numcores": strconv.Itoa(runtime.NumCPU()),
		"memory.totalbytes": "2147491840", "os.name": "debian", "os.version": "13", "kernel.name": "linux",
		"os.signals":      strings.Join(cluster.Signals(), ","),
		"unique.hostname": hostname, "nodedrain.version": "v1.2.3", "unique.storage.volume": root,
	} {
		must.Eq(t, expected, m.Attributes[name], must.Sprint(name))
	}
	must.MapContainsKeys(t, m.Attributes, []string{"kernel.version", "kernel.arch", "unique.storage.bytestotal", "unique.storage.bytesfree"})
	must.RegexMatch(t, regexp.MustCompile(`^(v[1-9][0-9]*|unavailable)$`), m.Attributes["kernel.landlock"])
	must.Eq(t, int64(runtime.NumCPU())*1000, m.Resources.CPU)
	must.Len(t, runtime.NumCPU(), m.Cores)
	must.NoError(t, m.Cores.Check())
	must.Eq(t, 2048, m.Resources.MemoryMB)
	must.Positive(t, m.Resources.DiskMB)
	must.Eq(t, m.Attributes["unique.network.ip-address"], m.Network.IP)
	must.NoError(t, (&cluster.NodeNetwork{IP: m.Network.IP, MinDynamicPort: 1, MaxDynamicPort: 1}).Check())

	m, err = fingerprint.Take(fingerprint.Options{Root: root, DataDir: root, Interface: "lo"})
	must.NoError(t, err)
	must.Eq(t, fingerprint.Network{Device: "lo", IP: "127.0.0.1"}, m.Network)
	_, err = fingerprint.Take(fingerprint.Options{Root: root, DataDir: root, Interface: "none0"})
	must.ErrorContains(t, err, `the network interface "none0"`)
}

// The present frequency of a processor changes all the time, so it counts only if the kernel reports no other. Processors
// of arm64 have none in /proc/cpuinfo.
func TestTake_frequency(t *testing.T) {
	t.Parallel()
	const folder = "sys/devices/system/cpu/cpu0/cpufreq/"
	base, largest, present := folder+"base_frequency", folder+"cpuinfo_max_freq", "proc/cpuinfo"
	for expected, files := range map[string]map[string]string{
		"2100": {base: "2100000\n", largest: "3900000\n", present: "cpu MHz : 1200.5\n"},
		"3900": {base: "no number", largest: "3900000\n"},
		"1200": {present: "cpu MHz : 1200.5\n"},
		"":     {present: "cpu MHz : fast\n"},
	} {
		files["proc/meminfo"] = "MemTotal: 1024 kB\n"
		root := machine(t, files)
		m, err := fingerprint.Take(fingerprint.Options{Root: root, DataDir: root})
		must.NoError(t, err)
		must.Eq(t, expected, m.Attributes["cpu.frequency"])
	}
}

// A fact that cannot be read is left out, a capacity that cannot be read is an error.
func TestTake_missing(t *testing.T) {
	t.Parallel()
	root := machine(t, map[string]string{"proc/meminfo": "MemTotal: 1024 kB\n"})
	m, err := fingerprint.Take(fingerprint.Options{Root: root, DataDir: root})
	must.NoError(t, err)
	must.MapNotContainsKeys(t, m.Attributes, []string{"cpu.modelname", "os.name", "nodedrain.version"})

	_, err = fingerprint.Take(fingerprint.Options{Root: machine(t, nil), DataDir: root})
	must.ErrorContains(t, err, "size of the memory")
	_, err = fingerprint.Take(fingerprint.Options{Root: machine(t, map[string]string{"proc/meminfo": "MemTotal: much kB\n"}), DataDir: root})
	must.ErrorContains(t, err, `MemTotal is "much kB"`)
	_, err = fingerprint.Take(fingerprint.Options{Root: root, DataDir: filepath.Join(root, "none")})
	must.ErrorContains(t, err, "size of the disk")
}
