package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// lamps is a device plugin of package sdk. It uses each field that a plugin has.
type lamps struct{ folder string }

func (*lamps) Info() sdk.Info {
	return sdk.Info{Name: "lamps", Version: "1.0.0", ConfigSchema: oneKey("mode")}
}

func (l *lamps) Configure(config []byte) error {
	var c struct {
		Mode string `codec:"mode"`
	}
	if err := sdk.Decode(config, &c); err != nil {
		return err
	}
	if c.Mode == "loud" {
		fmt.Fprint(os.Stderr, strings.Repeat("on stderr\n", 20))
		fmt.Println("printed")
	}
	return os.WriteFile(filepath.Join(l.folder, "config"), []byte(c.Mode), 0o600)
}

func lampGroups() []*cluster.DeviceGroup {
	return []*cluster.DeviceGroup{
		{
			Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L/1"},
			Attributes: map[string]cluster.DeviceAttribute{
				"int": {Kind: cluster.AttributeInt, Int: -5, Unit: "GiB"}, "float": {Kind: cluster.AttributeFloat, Float: 0.5},
				"bool": {Kind: cluster.AttributeBool, Bool: true}, "text": {Text: "red"}, "zero": {Kind: cluster.AttributeInt},
			},
			Devices: []cluster.Device{{ID: "a", Healthy: true, PCIBusID: "0000:01:00.0"}, {ID: "b", HealthDescription: "broken"}},
		},
		{Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "none"}},
	}
}

func (*lamps) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	report(lampGroups())
	<-ctx.Done()
	return ctx.Err()
}

func lampReservation() device.Reservation {
	return device.Reservation{
		Env:     map[string]string{"LAMP": "a"},
		Mounts:  []driver.Mount{{TaskPath: "/t", HostPath: "/h", ReadOnly: true}},
		Devices: []driver.Device{{TaskPath: "/dev/t", HostPath: "/dev/h", Permissions: "rwm"}},
	}
}

func (*lamps) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	switch {
	case len(ids) == 0:
		return device.Reservation{}, nil
	case ids[0] == "warm":
		return device.Reservation{}, sdk.Recoverable(errors.New("the lamp is warm"))
	case ids[0] == "slow":
		<-ctx.Done()
		return device.Reservation{}, ctx.Err()
	case ids[0] != "a":
		return device.Reservation{}, errors.New("unknown device " + ids[0])
	}
	return lampReservation(), nil
}

func lampStats() []device.GroupStats {
	return []device.GroupStats{{
		Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L/1"},
		Devices: map[string]device.Stats{
			"a": {
				Time:    time.Unix(5, 0).UTC(),
				Summary: device.StatValue{FloatNumerator: new(1.5), FloatDenominator: new(2.5), Unit: "W", Description: "power"},
				Values: device.StatObject{
					Values: map[string]device.StatValue{"on": {Bool: new(false)}, "state": {Text: new("")}},
					Nested: map[string]device.StatObject{"time": {Values: map[string]device.StatValue{"hours": {IntNumerator: new(int64(0)), IntDenominator: new(int64(9))}}}},
				},
			},
			"b": {},
		},
	}}
}

func (*lamps) Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	if interval != 1500*time.Millisecond {
		return errors.New("another interval")
	}
	report(lampStats())
	<-ctx.Done()
	return ctx.Err()
}

func (l *lamps) Close(context.Context) error {
	return os.WriteFile(filepath.Join(l.folder, "closed"), nil, 0o600)
}

// launchLamps launches the plugin, and returns its folder.
func launchLamps(t *testing.T, as string) (*host.Instance, string) {
	t.Helper()
	b := newDeviceBench(t, script{})
	folder := t.TempDir()
	b.options.Args, b.options.Config = []string{as, folder}, []byte(`{"mode": "dim"}`)
	return b.launch(), folder
}

// The log of a plugin has its standard error, and what it prints to standard output by mistake.
func TestDevice_ofTheSDK_log(t *testing.T) {
	t.Parallel()
	b := newDeviceBench(t, script{})
	b.options.Args, b.options.Config = []string{asLamps, t.TempDir()}, []byte(`{"mode": "loud"}`)
	must.NotNil(t, b.launch())
	log, err := os.ReadFile(b.options.LogFile)
	must.NoError(t, err)
	must.StrContains(t, string(log), strings.Repeat("on stderr\n", 20)+"printed\n")
}

// Kill of an ended plugin returns no error.
func TestInstance_Kill_twice(t *testing.T) {
	t.Parallel()
	i, _ := launchLamps(t, asLamps)
	for range 3 {
		must.NoError(t, i.Kill(t.Context()))
	}
}

// Answers of a plugin of package sdk reach the client unchanged.
func TestDevice_ofTheSDK(t *testing.T) {
	t.Parallel()
	i, folder := launchLamps(t, asLamps)
	p := i.Device()
	must.Eq(t, host.Info{Type: host.Device, Name: "lamps", Version: "1.0.0", APIVersion: "v0.1.0"}, i.Info())
	config, err := os.ReadFile(filepath.Join(folder, "config"))
	must.NoError(t, err)
	must.Eq(t, "dim", string(config))

	must.Eq(t, lampGroups(), first(t, p))
	r, err := p.Reserve(t.Context(), []string{"a"})
	must.NoError(t, err)
	must.Eq(t, lampReservation(), r)
	r, err = p.Reserve(t.Context(), nil)
	must.NoError(t, err)
	must.Eq(t, device.Reservation{}, r)
	_, err = p.Reserve(t.Context(), []string{"x"})
	must.EqError(t, err, "Reserve: unknown device x")
	must.Eq(t, driver.Fatal, driver.ClassOf(err))
	_, err = p.Reserve(t.Context(), []string{"warm"})
	must.EqError(t, err, "Reserve: the lamp is warm")
	must.Eq(t, driver.Recoverable, driver.ClassOf(err))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = p.Reserve(ctx, []string{"slow"})
	must.Eq(t, driver.Deadline, driver.ClassOf(err))

	measuring, stop := context.WithCancel(t.Context())
	var stats []device.GroupStats
	err = p.Stats(measuring, 1500*time.Millisecond, func(s []device.GroupStats) {
		stats = s
		stop()
	})
	must.Eq(t, driver.Deadline, driver.ClassOf(err))
	must.Eq(t, lampStats(), stats)
	must.EqError(t, p.Stats(t.Context(), time.Second, nil), "Stats: another interval")

	must.NoError(t, i.Shutdown(t.Context()))
	_, err = os.Stat(filepath.Join(folder, "closed"))
	must.NoError(t, err, must.Sprint("the plugin ended in order"))
}

// Statistics and a shutdown function are optional.
func TestDevice_ofTheSDK_smallest(t *testing.T) {
	t.Parallel()
	i, folder := launchLamps(t, asQuiet)
	err := i.Device().Stats(t.Context(), time.Second, nil)
	must.Eq(t, driver.Unsupported, driver.ClassOf(err))
	must.EqError(t, err, "Stats: the device plugin lamps does not measure")
	must.NoError(t, i.Shutdown(t.Context()))
	_, err = os.Stat(filepath.Join(folder, "closed"))
	must.ErrorIs(t, err, os.ErrNotExist)
}
