package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsimple"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// maxFile bounds the configuration file, in bytes.
const maxFile = 1 << 20

// Load reads a file whose name ends with .hcl or .json. It also reads the token file that the
// configuration names.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading the configuration: %s has %d bytes and may have %d", path, info.Size(), maxFile)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(path, src)
}

// Parse reads the content of a file. The path decides between HCL and JSON, and is shown in errors.
func Parse(path string, src []byte) (*Config, error) {
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".hcl" && ext != ".json" {
		return nil, fmt.Errorf("reading the configuration: the name of %s must end with .hcl or .json", path)
	}
	var f file
	if err := hclsimple.Decode(path, src, nil, &f); err != nil {
		return nil, readable(err)
	}
	c, found := f.config()
	if found.HasErrors() {
		return nil, readable(found)
	}
	return c, nil
}

// readable shows all mistakes, one on each line. The error of [hcl.Diagnostics] shows the first one.
func readable(err error) error {
	var found hcl.Diagnostics
	if !errors.As(err, &found) {
		return err
	}
	var lines []string
	for _, d := range found {
		if d.Severity == hcl.DiagError {
			lines = append(lines, d.Error())
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

// file is the form of the configuration file. Values that are checked further are expressions, so
// that an error names their line.
type file struct {
	Name       hcl.Expression    `hcl:"name,optional"`
	Datacenter hcl.Expression    `hcl:"datacenter,optional"`
	Region     hcl.Expression    `hcl:"region,optional"`
	Class      hcl.Expression    `hcl:"class,optional"`
	Pool       hcl.Expression    `hcl:"pool,optional"`
	Meta       map[string]string `hcl:"meta,optional"`
	MetaBlocks []metaBlock       `hcl:"meta,block"` // as configurations of the reference have it
	DataDir    hcl.Expression    `hcl:"data_dir"`
	PluginDir  hcl.Expression    `hcl:"plugin_dir,optional"`
	RunDir     hcl.Expression    `hcl:"run_dir,optional"`
	Interface  hcl.Expression    `hcl:"network_interface,optional"`
	MinPort    hcl.Expression    `hcl:"min_dynamic_port,optional"`
	MaxPort    hcl.Expression    `hcl:"max_dynamic_port,optional"`
	Resources  *resources        `hcl:"resources,block"`
	Reserved   *reserved         `hcl:"reserved,block"`
	Servers    *servers          `hcl:"servers,block"`
	Limits     *limits           `hcl:"limits,block"`
	Log        *logBlock         `hcl:"log,block"`
	Plugins    []pluginBlock     `hcl:"plugin,block"`
}

// metaBlock has an attribute for each entry.
type metaBlock struct {
	Entries map[string]string `hcl:",remain"`
	Range   hcl.Range         `hcl:",def_range"`
}

type resources struct {
	CPU    hcl.Expression `hcl:"cpu,optional"`
	Memory hcl.Expression `hcl:"memory,optional"`
	Disk   hcl.Expression `hcl:"disk,optional"`
}

type reserved struct {
	CPU    hcl.Expression `hcl:"cpu,optional"`
	Memory hcl.Expression `hcl:"memory,optional"`
	Disk   hcl.Expression `hcl:"disk,optional"`
	Ports  hcl.Expression `hcl:"reserved_ports,optional"`
	Cores  hcl.Expression `hcl:"cores,optional"`
}

type servers struct {
	Addresses  hcl.Expression `hcl:"addresses"`
	TokenFile  hcl.Expression `hcl:"token_file,optional"`
	CAFile     hcl.Expression `hcl:"ca_file,optional"`
	CertFile   hcl.Expression `hcl:"cert_file,optional"`
	KeyFile    hcl.Expression `hcl:"key_file,optional"`
	ServerName hcl.Expression `hcl:"server_name,optional"`
}

type limits struct {
	MaxKillTimeout hcl.Expression `hcl:"max_kill_timeout,optional"`
	MaxAllocs      hcl.Expression `hcl:"max_allocs,optional"`
	DriverCalls    hcl.Expression `hcl:"driver_calls,optional"`
	HoldLimit      hcl.Expression `hcl:"hold_limit,optional"`
	DataRetention  hcl.Expression `hcl:"data_retention,optional"`
}

type logBlock struct {
	Level hcl.Expression `hcl:"level,optional"`
	JSON  bool           `hcl:"json,optional"`
}

// config checks the values and sets the defaults.
func (f *file) config() (*Config, hcl.Diagnostics) {
	var r reader
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	c := &Config{
		Name:       r.name("name", f.Name, hostname),
		Datacenter: r.name("datacenter", f.Datacenter, DefaultDatacenter),
		Region:     r.name("region", f.Region, DefaultRegion),
		Class:      r.name("class", f.Class, ""),
		Pool:       r.name("pool", f.Pool, cluster.DefaultNodePool),
		Meta:       f.meta(&r),
		DataDir:    r.path("data_dir", f.DataDir),
		PluginDir:  r.path("plugin_dir", f.PluginDir),
		RunDir:     r.path("run_dir", f.RunDir),
		Resources:  f.Resources.read(&r),
		Limits:     f.Limits.read(&r),
		Log:        f.Log.read(&r),
		Plugins:    readPlugins(&r, f.Plugins),
	}
	if b := f.Reserved; b != nil {
		c.Reserved = (&resources{b.CPU, b.Memory, b.Disk}).read(&r)
		var err error
		if c.ReservedPorts, err = cluster.ParsePortRanges(r.text(b.Ports, "")); err != nil {
			r.refuse(b.Ports, "reserved_ports", err.Error())
		}
		if c.ReservedCores, err = cluster.ParseCores(r.text(b.Cores, "")); err != nil {
			r.refuse(b.Cores, "cores", err.Error())
		}
	}
	c.NetworkInterface = r.name("network_interface", f.Interface, "")
	c.MinDynamicPort = r.count("min_dynamic_port", f.MinPort, 1, cluster.DefaultMinDynamicPort)
	c.MaxDynamicPort = r.count("max_dynamic_port", f.MaxPort, 1, cluster.DefaultMaxDynamicPort)
	if c.MaxDynamicPort > cluster.MaxPort || c.MinDynamicPort > c.MaxDynamicPort {
		at := f.MaxPort
		if at == nil || at.Range().Empty() {
			at = f.MinPort
		}
		r.refuse(at, "max_dynamic_port", fmt.Sprintf("the range %d to %d must be within [1, %d]", c.MinDynamicPort, c.MaxDynamicPort, cluster.MaxPort))
	}
	if len(c.RunDir) > MaxRunDir {
		r.refuse(f.RunDir, "run_dir", fmt.Sprintf("%q has more than %d bytes: sockets in it would have too long paths", c.RunDir, MaxRunDir))
	}
	if c.DataDir == "" && !r.found.HasErrors() {
		r.refuse(f.DataDir, "data_dir", "it must not be empty")
	}
	if f.Servers == nil {
		c.Servers.Addresses = []string{"http://127.0.0.1:4646"}
	} else {
		c.Servers = f.Servers.read(&r)
	}
	return c, r.found
}

// meta returns the entries of the attribute or of the block.
func (f *file) meta(r *reader) map[string]string {
	for i, b := range f.MetaBlocks {
		if i > 0 || f.Meta != nil {
			r.add(b.Range, "meta", "the file has it twice")
		}
	}
	if len(f.MetaBlocks) > 0 {
		return f.MetaBlocks[0].Entries
	}
	return f.Meta
}

func (b *resources) read(r *reader) cluster.Resources {
	if b == nil {
		return cluster.Resources{}
	}
	return cluster.Resources{
		CPU:      int64(r.count("cpu", b.CPU, 0, 0)),
		MemoryMB: int64(r.count("memory", b.Memory, 0, 0)),
		DiskMB:   int64(r.count("disk", b.Disk, 0, 0)),
	}
}

func (b *limits) read(r *reader) Limits {
	if b == nil {
		b = new(limits)
	}
	return Limits{
		MaxKillTimeout: r.duration("max_kill_timeout", b.MaxKillTimeout, DefaultMaxKillTimeout),
		MaxAllocs:      r.count("max_allocs", b.MaxAllocs, 0, DefaultMaxAllocs),
		DriverCalls:    r.count("driver_calls", b.DriverCalls, 1, DefaultDriverCalls),
		HoldLimit:      r.duration("hold_limit", b.HoldLimit, DefaultHoldLimit),
		DataRetention:  r.duration("data_retention", b.DataRetention, DefaultDataRetention),
	}
}

func (b *logBlock) read(r *reader) Log {
	if b == nil {
		b = new(logBlock)
	}
	l := Log{JSON: b.JSON}
	switch level := r.text(b.Level, "info"); level {
	case "debug", "info", "warn", "error":
		_ = l.Level.UnmarshalText([]byte(level)) // it has these four
	default:
		r.refuse(b.Level, "level", fmt.Sprintf("%q must be debug, info, warn or error", level))
	}
	return l
}
