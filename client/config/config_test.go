//race:skip one goroutine
package config_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const everything = `
name       = "n1"
datacenter = "dc2"
region     = "eu"
class      = "web"
pool       = "blue"
data_dir   = "/var/lib/nodedrain"
plugin_dir = "/opt/plugins"
run_dir    = "/run/nd"
meta       = { rack = "r1" }

resources {
  memory = 4096
}
reserved {
  cpu  = 500
  disk = 10
  reserved_ports = "22,8000-8010"
  cores = "0,2-3"
}
network_interface = "eth1"
min_dynamic_port  = 30000
max_dynamic_port  = 30999
servers {
  addresses   = ["https://10.0.0.1:4646", "http://[::1]:4646"]
  ca_file     = "/etc/ca.pem"
  cert_file   = "/etc/cert.pem"
  key_file    = "/etc/key.pem"
  server_name = "server.eu.nomad"
}
limits {
  max_kill_timeout = "90s"
  max_allocs       = 7
  driver_calls     = 3
  hold_limit       = "4m"
  data_retention   = "20m"
}
log {
  level = "debug"
  json  = true
}
plugin "raw_exec" {
  start_timeout = "10m"
  env {
    HTTPS_PROXY = "http://proxy:3128"
    LEVEL       = 2
    empty       = ""
  }
  config {
    anything = [1, "a"]
    inner "x" {
      y = null
    }
  }
}
plugin "mock" {
  enabled = false
}
`

func TestParse_everyKey(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("client.hcl", []byte(everything))
	must.NoError(t, err)
	must.Eq(t, &config.Config{
		Name: "n1", Datacenter: "dc2", Region: "eu", Class: "web", Pool: "blue", DataDir: "/var/lib/nodedrain", PluginDir: "/opt/plugins", RunDir: "/run/nd",
		Meta:      map[string]string{"rack": "r1"},
		Resources: cluster.Resources{MemoryMB: 4096}, Reserved: cluster.Resources{CPU: 500, DiskMB: 10},
		ReservedPorts: cluster.PortRanges{{First: 22, Last: 22}, {First: 8000, Last: 8010}}, ReservedCores: cluster.Cores{0, 2, 3}, NetworkInterface: "eth1", MinDynamicPort: 30000, MaxDynamicPort: 30999,
		Servers: config.Servers{
			Addresses: []string{"https://10.0.0.1:4646", "http://[::1]:4646"},
			CAFile:    "/etc/ca.pem", CertFile: "/etc/cert.pem", KeyFile: "/etc/key.pem", ServerName: "server.eu.nomad",
		},
		Limits: config.Limits{MaxKillTimeout: 90 * time.Second, MaxAllocs: 7, DriverCalls: 3, HoldLimit: 4 * time.Minute, DataRetention: 20 * time.Minute},
		Log:    config.Log{Level: slog.LevelDebug, JSON: true},
		Plugins: map[string]config.Plugin{
			"raw_exec": {Name: "raw_exec", Enabled: true, StartTimeout: 10 * time.Minute, Env: map[string]string{"HTTPS_PROXY": "http://proxy:3128", "LEVEL": "2", "empty": ""}, Config: json.RawMessage(`{"anything":[1,"a"],"inner":[{"x":{"y":null}}]}`)},
			"mock":     {Name: "mock"},
		},
	}, c)
}

func TestParse_defaults(t *testing.T) {
	t.Parallel()
	hostname, err := os.Hostname()
	must.NoError(t, err)
	for path, src := range map[string]string{"a.hcl": `data_dir = "/d"`, "a.json": `{"data_dir": "/d"}`} {
		c, err := config.Parse(path, []byte(src))
		must.NoError(t, err)
		must.Eq(t, &config.Config{
			Name: hostname, Datacenter: "dc1", Region: "global", Pool: "default", DataDir: "/d", MinDynamicPort: 20000, MaxDynamicPort: 32000,
			Servers: config.Servers{Addresses: []string{"http://127.0.0.1:4646"}},
			Limits:  config.Limits{MaxKillTimeout: time.Hour, MaxAllocs: 1000, DriverCalls: 64, HoldLimit: 10 * time.Minute, DataRetention: time.Hour},
			Plugins: map[string]config.Plugin{},
		}, c)
	}
}

func TestParse_json(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("a.json", []byte(`{"data_dir": "/d", "meta": {"a": "b"}, "plugin": {"raw_exec": {"enabled": true, "env": {"A": "b", "_c": "d"}, "config": {"x": [1]}}}}`))
	must.NoError(t, err)
	must.Eq(t, map[string]string{"a": "b"}, c.Meta)
	must.True(t, c.Plugins["raw_exec"].Enabled)
	must.Eq(t, map[string]string{"A": "b", "_c": "d"}, c.Plugins["raw_exec"].Env)
	must.EqJSON(t, `{"x": [1]}`, string(c.Plugins["raw_exec"].Config))
}

// Each mistake is named with file, line and key.
func TestParse_mistakes(t *testing.T) {
	t.Parallel()
	const dir = "data_dir = \"/d\"\n"
	cases := []struct {
		name, src string
		expected  []string
	}{
		{"an unknown key", dir + `datacentre = "dc1"`, []string{`c.hcl:2,1-11`, `datacentre`}},
		{"an unknown block", dir + `server { }`, []string{`c.hcl:2,1-7`, `"server"`}},
		{"an unknown key of a block", dir + "limits {\n max_kill = \"1h\"\n}", []string{`c.hcl:3,2-10`, `max_kill`}},
		{"no data_dir", `name = "a"`, []string{`c.hcl:1`, `data_dir`}},
		{"an empty data_dir", `data_dir = ""`, []string{`c.hcl:1,12-14`, `data_dir`}},
		{"a relative data_dir", `data_dir = "d"`, []string{`c.hcl:1,12-15`, `data_dir`, `absolute`}},
		{"a long run_dir", dir + `run_dir = "/a/folder/whose/path/has/more/than/40/bytes"`, []string{`c.hcl:2,11-56`, `"run_dir"`, `more than 40 bytes`}},
		{"no text", dir + `name = {}`, []string{`c.hcl:2,8-9`, `string required`}},
		{"a name with a control character", dir + `name = "a\nb"`, []string{`c.hcl:2,8-14`, `"name"`, `control character`}},
		{"a negative number", dir + "reserved {\n cpu = -1\n}", []string{`c.hcl:3,8-10`, `"cpu"`, `at least 0`}},
		{"an empty range of ports", dir + "min_dynamic_port = 100\nmax_dynamic_port = 99", []string{`"max_dynamic_port"`, `the range 100 to 99 must be within [1, 65535]`}},
		{"a large port", dir + "max_dynamic_port = 65536", []string{`c.hcl:2,20-25`, `the range 20000 to 65536`}},
		{"a reserved word", dir + "reserved {\n reserved_ports = \"ssh\"\n}", []string{`c.hcl:3,19-24`, `"reserved_ports"`, `"ssh" must be a port`}},
		{"no driver calls", dir + "limits {\n driver_calls = 0\n}", []string{`c.hcl:3,17-18`, `"driver_calls"`, `at least 1`}},
		{"half a number", dir + "limits {\n max_allocs = 0.5\n}", []string{`c.hcl:3,15-18`, `whole number`}},
		{"no duration", dir + "limits {\n max_kill_timeout = \"soon\"\n}", []string{`c.hcl:3,21-27`, `"max_kill_timeout"`, `soon`}},
		{"a level", dir + "log {\n level = \"loud\"\n}", []string{`c.hcl:3,10-16`, `"level"`, `loud`}},
		{"no addresses", dir + "servers {\n addresses = []\n}", []string{`c.hcl:3,14-16`, `"addresses"`, `at least one`}},
		{"a far address without TLS", dir + "servers {\n addresses = [\"http://10.0.0.1:4646\"]\n}", []string{`c.hcl:3,14-38`, `http://10.0.0.1:4646`, `no TLS`}},
		{"a name without TLS", dir + "servers {\n addresses = [\"http://localhost.example:4646\"]\n}", []string{`no TLS`}},
		{"an address without a scheme", dir + "servers {\n addresses = [\"10.0.0.1:4646\"]\n}", []string{`c.hcl:3`, `"addresses"`}},
		{"an address with a password", dir + "servers {\n addresses = [\"http://a:b@127.0.0.1:4646\"]\n}", []string{`may have a scheme`}},
		{"TLS without authorities", dir + "servers {\n addresses = [\"https://10.0.0.1:4646\"]\n}", []string{`c.hcl:3`, `ca_file`}},
		{"a certificate without a key", dir + "servers {\n addresses = [\"http://127.0.0.1\"]\n cert_file = \"/c\"\n}", []string{`key_file`}},
		{"a missing token file", dir + "servers {\n addresses = [\"http://127.0.0.1\"]\n token_file = \"/no/such/file\"\n}", []string{`c.hcl:4,15-30`, `"token_file"`, `no such file`}},
		{"a plugin twice", dir + "plugin \"a\" { }\nplugin \"a\" { }", []string{`c.hcl:3`, `two blocks`}},
		{"a plugin in another folder", dir + `plugin "../a" { }`, []string{`c.hcl:2`, `"../a"`}},
		{"a plugin's setting outside of config", dir + "plugin \"a\" {\n args = 1\n}", []string{`c.hcl:3,2-6`, `args`}},
		{"a variable in a plugin's setting", dir + "plugin \"a\" {\n config {\n  x = y\n }\n}", []string{`c.hcl:4,7-8`}},
		{"an invalid name of a variable", dir + "plugin \"a\" {\n env {\n  a-b = \"x\"\n }\n}", []string{`c.hcl:4,3-12`, `"env"`, `"a-b" is not the name of a variable`}},
		{"a variable of the protocol", dir + "plugin \"a\" {\n env {\n  PLUGIN_MIN_PORT = 1\n }\n}", []string{`c.hcl:4,3-22`, `the client sets the variable PLUGIN_MIN_PORT`}},
		{"a variable without a value", dir + "plugin \"a\" {\n env {\n  A = null\n }\n}", []string{`c.hcl:4,3-11`, `the variable A has no value`}},
		{"a variable that is a list", dir + "plugin \"a\" {\n env {\n  A = [1]\n }\n}", []string{`c.hcl:4,7-8`, `string required`}},
		{"a block in env", dir + "plugin \"a\" {\n env {\n  A { }\n }\n}", []string{`c.hcl:4,3-4`}},
		{"large variables", dir + "plugin \"a\" {\n env {\n  A = \"" + strings.Repeat("v", 30000) + "\"\n  B = \"" + strings.Repeat("v", 30000) + "\"\n  C = \"" + strings.Repeat("v", 30000) + "\"\n }\n}", []string{`c.hcl:3`, `the variables have 90003 bytes`}},
		{"no HCL", dir + `name = `, []string{`c.hcl:2`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("c.hcl", []byte(c.src))
			must.Error(t, err)
			for _, expected := range c.expected {
				must.StrContains(t, err.Error(), expected)
			}
		})
	}
}

// All mistakes are shown, one on each line.
func TestParse_severalMistakes(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("c.hcl", []byte("data_dir = \"d\"\nlimits {\n max_allocs = -1\n}"))
	must.Error(t, err)
	must.SliceLen(t, 2, strings.Split(err.Error(), "\n"))
}

func TestLoad_token(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, path := filepath.Join(dir, "token"), filepath.Join(dir, "c.hcl")
	must.NoError(t, os.WriteFile(path, []byte("data_dir = \"/d\"\nservers {\n addresses = [\"http://127.0.0.1:1\"]\n token_file = \""+token+"\"\n}"), 0o600))
	must.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	c, err := config.Load(path)
	must.NoError(t, err)
	must.Eq(t, "secret", c.Servers.Token)

	must.NoError(t, os.Chmod(token, 0o644))
	_, err = config.Load(path)
	must.ErrorContains(t, err, "every user can use "+token)
	must.NoError(t, os.Chmod(token, 0o600))
	must.NoError(t, os.WriteFile(token, []byte("\n"), 0o600))
	_, err = config.Load(path)
	must.ErrorContains(t, err, token+" is empty")
	_, err = config.Load(filepath.Join(dir, "none.hcl"))
	must.ErrorIs(t, err, os.ErrNotExist)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), nil, 0o600))
	_, err = config.Load(filepath.Join(dir, "c.yaml"))
	must.ErrorContains(t, err, "c.yaml")
}

// Input from outside gives a configuration or an error, and no panic.
func FuzzParse(f *testing.F) {
	f.Add("a.hcl", everything)
	f.Add("a.json", `{"data_dir": "/d", "plugin": [{"a": {"config": {}}}]}`)
	f.Fuzz(func(t *testing.T, path, src string) {
		c, err := config.Parse(path, []byte(src))
		if (c == nil) == (err == nil) {
			t.Fatal("neither a configuration nor an error, or both")
		}
		if c != nil && (c.DataDir == "" || len(c.Servers.Addresses) == 0 || c.Limits.DriverCalls < 1 || c.Limits.MaxKillTimeout <= 0 || c.Limits.HoldLimit <= 0 || c.Limits.DataRetention <= 0) {
			t.Fatalf("%+v", c)
		}
	})
}
