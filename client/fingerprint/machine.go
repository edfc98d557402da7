package fingerprint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Options are the folders that are read, and the version of the client.
type Options struct {
	// Root is the folder above proc and etc; empty is "/". Tests have another one.
	Root string
	// DataDir is a folder on the disk whose capacity counts.
	DataDir string
	// Version is the version of the client.
	Version string
	// Interface is the network interface whose address tasks get. Empty is that of the default route.
	Interface string
}

// Machine is what was found.
type Machine struct {
	// Attributes do not change while the machine runs, except the free bytes of the disk.
	Attributes map[string]string
	// Resources is the capacity. CPU is in thousandths of a core.
	Resources cluster.Resources
	// Cores are the cores that this process may use.
	Cores   cluster.Cores
	Network Network
}

// Take reads the facts of this machine. It fails if processors, memory or disk are unknown: without them
// no capacity can be reported. It fails also if the network interface of the options has no address. Other facts that cannot be read are left out.
func Take(o Options) (*Machine, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	m := &Machine{Attributes: make(map[string]string)}
	m.set("nodedrain.version", o.Version)
	m.set("cpu.arch", runtime.GOARCH)
	m.host()
	m.system(filepath.Join(o.Root, "etc/os-release"))
	m.set("os.signals", strings.Join(cluster.Signals(), ","))
	m.processors(o.Root)
	if err := m.memory(filepath.Join(o.Root, "proc/meminfo")); err != nil {
		return nil, err
	}
	if err := m.network(o.Interface); err != nil {
		return nil, err
	}
	return m, m.disk(o.DataDir)
}

// set sets an attribute that is not empty.
func (m *Machine) set(name, value string) {
	if value != "" {
		m.Attributes[name] = value
	}
}

// host sets what the kernel reports of itself.
func (m *Machine) host() {
	m.set("kernel.name", runtime.GOOS)
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.set("kernel.version", text(u.Release[:]))
		m.set("kernel.arch", text(u.Machine[:]))
		m.set("unique.hostname", text(u.Nodename[:]))
	}
	m.set("kernel.landlock", landlock())
}

// landlock returns the version of Landlock that the kernel supports, such as "v3", or "unavailable".
func landlock() string {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != 0 {
		return "unavailable"
	}
	return "v" + strconv.FormatUint(uint64(version), 10)
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

// system sets the name and the version of the distribution.
func (m *Machine) system(path string) {
	content, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(content)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		switch key {
		case "ID":
			m.set("os.name", strings.Trim(value, "'"))
		case "VERSION_ID":
			m.set("os.version", strings.Trim(value, "'"))
		}
	}
}

// processors counts those that this process may use.
func (m *Machine) processors(root string) {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) == nil {
		for core := range len(may) * 64 {
			if may.IsSet(core) {
				m.Cores = append(m.Cores, core)
			}
		}
	}
	m.Resources.CPU = int64(runtime.NumCPU()) * 1000
	m.set("cpu.numcores", strconv.Itoa(runtime.NumCPU()))
	content, err := os.ReadFile(filepath.Join(root, "proc/cpuinfo"))
	if err == nil {
		model, _ := field(content, "model name")
		m.set("cpu.modelname", model)
	}
	if mhz := frequency(root, content); mhz > 0 {
		m.set("cpu.frequency", strconv.Itoa(int(mhz)))
	}
}

// frequency returns the base frequency of the first processor in MHz, otherwise its largest one, otherwise the present
// one. It returns zero if the kernel reports none.
func frequency(root string, cpuinfo []byte) float64 {
	for _, name := range []string{"base_frequency", "cpuinfo_max_freq"} {
		content, err := os.ReadFile(filepath.Join(root, "sys/devices/system/cpu/cpu0/cpufreq", name))
		if err != nil {
			continue
		}
		if khz, err := strconv.ParseFloat(string(bytes.TrimSpace(content)), 64); err == nil && khz > 0 {
			return khz / 1000
		}
	}
	text, _ := field(cpuinfo, "cpu MHz")
	mhz, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return mhz
}

func (m *Machine) memory(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the size of the memory: %w", err)
	}
	total, _ := field(content, "MemTotal")
	kib, err := strconv.ParseUint(strings.TrimSuffix(total, " kB"), 10, 40)
	if err != nil {
		return fmt.Errorf("reading the size of the memory: %s: MemTotal is %q", path, total)
	}
	m.Resources.MemoryMB = int64(kib >> 10)
	m.set("memory.totalbytes", strconv.FormatUint(kib<<10, 10))
	return nil
}

// field returns the value of the first line "name : value".
func field(content []byte, name string) (value string, found bool) {
	for line := range bytes.Lines(content) {
		key, value, is := bytes.Cut(line, []byte(":"))
		if is && string(bytes.TrimSpace(key)) == name {
			return string(bytes.TrimSpace(value)), true
		}
	}
	return "", false
}

// disk sets the capacity of the file system of a folder. Allocations get what is free at the start of
// the client.
func (m *Machine) disk(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fmt.Errorf("reading the size of the disk: %w", &os.PathError{Op: "statfs", Path: dir, Err: err})
	}
	total, free := s.Blocks*uint64(s.Bsize), s.Bavail*uint64(s.Bsize)
	m.Resources.DiskMB = int64(free >> 20)
	m.set("unique.storage.volume", dir)
	m.set("unique.storage.bytestotal", strconv.FormatUint(total, 10))
	m.set("unique.storage.bytesfree", strconv.FormatUint(free, 10))
	return nil
}
