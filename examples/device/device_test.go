package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// The program passes the conformance suite of device plugins.
func TestConformance(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "files")
	programs.Build(t, ".", path)
	options, err := plugintest.ReadDevices(path, "test.json")
	must.NoError(t, err)
	harness := plugintest.DeviceHarness(options)
	harness.Strict = true
	devicetest.Run(t, harness)
}

func configured(t *testing.T, groups ...map[string]any) (*files, error) {
	t.Helper()
	config, err := sdk.Encode(map[string]any{"device": groups})
	must.NoError(t, err)
	p := &files{}
	return p, p.Configure(config)
}

// Files, sockets and device files are devices. Their paths in the task are the same as on the
// machine.
func TestReserve(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "nd") // the path of a socket is short
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, socket := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.sock")
	must.NoError(t, os.WriteFile(file, nil, 0o600))
	l, err := net.Listen("unix", socket)
	must.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p, err := configured(t,
		map[string]any{"vendor": "v", "type": "file", "name": "my-texts", "paths": []string{dir + "/*.txt"}, "read_only": true},
		map[string]any{"vendor": "v", "type": "file", "name": "rest", "paths": []string{dir + "/*", "/dev/null"}, "attributes": map[string]string{"a": "5", "b": "x"}},
	)
	must.NoError(t, err)
	must.Eq(t, []*cluster.DeviceGroup{
		{Kind: cluster.DeviceKind{Vendor: "v", Type: "file", Name: "my-texts"}, Attributes: map[string]cluster.DeviceAttribute{}, Devices: []cluster.Device{{ID: file, Healthy: true}}},
		{
			Kind:       cluster.DeviceKind{Vendor: "v", Type: "file", Name: "rest"},
			Attributes: map[string]cluster.DeviceAttribute{"a": {Kind: cluster.AttributeInt, Int: 5}, "b": {Text: "x"}},
			Devices:    []cluster.Device{{ID: "/dev/null", Healthy: true}, {ID: socket, Healthy: true}},
		},
	}, p.find())
	r, err := p.Reserve(t.Context(), []string{"/dev/null", socket})
	must.NoError(t, err)
	must.Eq(t, device.Reservation{
		Env:     map[string]string{"FILES_REST": "/dev/null," + socket},
		Mounts:  []driver.Mount{{TaskPath: socket, HostPath: socket}},
		Devices: []driver.Device{{TaskPath: "/dev/null", HostPath: "/dev/null", Permissions: "rw"}},
	}, r)
	r, err = p.Reserve(t.Context(), []string{file})
	must.NoError(t, err)
	must.Eq(t, device.Reservation{Env: map[string]string{"FILES_MY_TEXTS": file}, Mounts: []driver.Mount{{TaskPath: file, HostPath: file, ReadOnly: true}}}, r)
	_, err = p.Reserve(t.Context(), []string{"/etc/passwd"})
	must.EqError(t, err, `"/etc/passwd" is no device of this plugin`)
}

// While a file is missing, its device is unhealthy, or not reported if the config has a pattern.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named, matched := filepath.Join(dir, "named"), filepath.Join(dir, "matched.x")
	p, err := configured(t, map[string]any{"vendor": "v", "type": "file", "name": "n", "paths": []string{named, dir + "/*.x"}})
	must.NoError(t, err)
	_, err = p.Reserve(t.Context(), []string{named})
	must.Eq(t, driver.Recoverable, driver.ClassOf(err))
	must.ErrorContains(t, err, named+": no such file or directory")
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		began := time.Now()
		time.AfterFunc(interval/2, func() {
			must.NoError(t, os.WriteFile(named, nil, 0o600))
			must.NoError(t, os.WriteFile(matched, nil, 0o600))
		})
		time.AfterFunc(5*interval/2, func() { must.NoError(t, os.Remove(matched)) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*interval)
		defer cancel()
		err := p.Fingerprints(ctx, func(groups []*cluster.DeviceGroup) {
			text := time.Since(began).String()
			for _, d := range groups[0].Devices {
				text += " " + filepath.Base(d.ID) + ":" + d.HealthDescription
			}
			reports = append(reports, text)
		})
		must.Error(t, err)
		must.Eq(t, []string{"0s named:no such file or directory", "1s matched.x: named:", "3s named:"}, reports)
	})
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	for expected, group := range map[string]map[string]any{
		`the path "dev/null" is not absolute`: {"name": "a", "paths": []string{"dev/null"}},
		`the pattern "/dev/[": syntax error`:  {"name": "a", "paths": []string{"/dev/["}},
		`two devices have the name "b"`:       {"name": "b", "paths": []string{"/dev/null"}},
		`no matching struct field found`:      {"name": "a", "path": "/dev/null"},
	} {
		_, err := configured(t, group, map[string]any{"name": "b", "paths": []string{"/dev/zero"}})
		must.ErrorContains(t, err, expected)
	}
}

// A read-only file is healthy without the permission to write.
func TestInspect(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write to each file")
	}
	path := filepath.Join(t.TempDir(), "file")
	must.NoError(t, os.WriteFile(path, nil, 0o400))
	must.False(t, group{}.inspect(path).Healthy)
	must.True(t, group{ReadOnly: true}.inspect(path).Healthy)
}
