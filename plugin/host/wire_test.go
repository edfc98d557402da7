package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	devicepb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// mirror is a plugin that answers with its fields and keeps what it gets.
type mirror struct {
	sdk.Driver
	capabilities driver.Capabilities
	fingerprint  driver.Fingerprint
	status       driver.Status
	exit         driver.ExitResult
	usage        driver.Usage
	event        driver.Event
	network      *driver.Network
	groups       []*cluster.DeviceGroup
	reservation  device.Reservation
	stats        []device.GroupStats

	started, recovered *driver.TaskConfig
	destroyed          *driver.Network
}

func (*mirror) Info() sdk.Info                      { return sdk.Info{Name: "mirror", Version: "1.0.0"} }
func (*mirror) Configure([]byte) error              { return nil }
func (m *mirror) Capabilities() driver.Capabilities { return m.capabilities }

func (m *mirror) Fingerprints(_ context.Context, report func(driver.Fingerprint)) error {
	report(m.fingerprint)
	return nil
}

func (m *mirror) Start(_ context.Context, task *driver.TaskConfig) ([]byte, error) {
	m.started = task
	return []byte("state"), nil
}

func (m *mirror) Recover(_ context.Context, task *driver.TaskConfig, _ int32, state []byte) error {
	if m.recovered = task; string(state) != "state" {
		return errors.New("another state")
	}
	return nil
}

func (m *mirror) Wait(context.Context, driver.TaskID) (driver.ExitResult, error) { return m.exit, nil }
func (m *mirror) Inspect(context.Context, driver.TaskID) (driver.Status, error)  { return m.status, nil }

func (m *mirror) Stats(_ context.Context, _ driver.TaskID, _ time.Duration, report func(driver.Usage)) error {
	report(m.usage)
	return nil
}

func (m *mirror) Events(_ context.Context, report func(driver.Event)) error {
	report(m.event)
	return nil
}

func (m *mirror) CreateNetwork(context.Context, string, string) (*driver.Network, bool, error) {
	return m.network, true, nil
}

func (m *mirror) DestroyNetwork(_ context.Context, _ string, network *driver.Network) error {
	m.destroyed = network
	return nil
}

// mirroredDevices is the same for a device plugin.
type mirroredDevices struct{ *mirror }

func (m mirroredDevices) Fingerprints(_ context.Context, report func([]*cluster.DeviceGroup)) error {
	report(m.groups)
	return nil
}

func (m mirroredDevices) Reserve(context.Context, []string) (device.Reservation, error) {
	return m.reservation, nil
}

func (m mirroredDevices) Stats(_ context.Context, _ time.Duration, report func([]device.GroupStats)) error {
	report(m.stats)
	return nil
}

// served connects this package to the plugin, in this process.
func served(t *testing.T, register func(*grpc.Server)) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	register(s)
	go s.Serve(listener)
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:mirror", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, conn.Close()) })
	return conn
}

// Each field of the types in package driver and device crosses the wire, alone and with all others, in both
// directions. Bug: the address of a network was lost when it had no hostname.
func TestWire_eachFieldOfADriver(t *testing.T) {
	t.Parallel()
	m := &mirror{}
	conn := served(t, func(s *grpc.Server) { sdk.Register(s, m) })
	r := &remote{client: pb.NewDriverClient(conn)}
	r.gone = make(chan struct{})
	ctx := t.Context()

	cross(t, func(want *driver.TaskConfig) (driver.TaskConfig, driver.TaskConfig) {
		want.ID = "task"
		handle, err := r.Start(ctx, want)
		must.NoError(t, err)
		must.NoError(t, r.Recover(ctx, want.ID, handle))
		return *m.started, *m.recovered
	})
	cross(t, func(want *driver.Status) (driver.Status, driver.Status) {
		if want.Exit != nil {
			want.State = driver.TaskExited
			ended(want.Exit)
		}
		m.status = *want
		got, err := r.Inspect(ctx, "task")
		must.NoError(t, err)
		return got, got
	})
	cross(t, func(want *driver.ExitResult) (driver.ExitResult, driver.ExitResult) {
		ended(want)
		m.exit = *want
		got, err := r.Wait(ctx, "task")
		must.NoError(t, err)
		return got, got
	})
	cross(t, func(want *driver.Capabilities) (driver.Capabilities, driver.Capabilities) {
		m.capabilities = *want
		answer, err := r.client.Capabilities(ctx, &pb.CapabilitiesRequest{})
		must.NoError(t, err)
		got := fromCapabilities(answer.GetCapabilities(), want.HostCgroup) // the host states it
		return got, got
	})
	cross(t, func(want *driver.Fingerprint) (got, same driver.Fingerprint) {
		m.fingerprint = *want
		must.ErrorIs(t, r.Fingerprints(ctx, func(f driver.Fingerprint) { got = f }), errEnded)
		return got, got
	})
	cross(t, func(want *driver.Usage) (got, same driver.Usage) {
		m.usage = *want
		must.NoError(t, r.Stats(ctx, "task", time.Second, func(u driver.Usage) { got = u }))
		return got, got
	})
	cross(t, func(want *driver.Event) (got, same driver.Event) {
		m.event = *want
		must.ErrorIs(t, r.Events(ctx, func(e driver.Event) { got = e }), errEnded)
		return got, got
	})
	cross(t, func(want *driver.Network) (driver.Network, driver.Network) {
		m.network = want
		answer, err := r.client.CreateNetwork(ctx, &pb.CreateNetworkRequest{})
		must.NoError(t, err)
		must.True(t, proto.Equal(toNetwork(want), answer.GetIsolationSpec()), must.Sprint(answer))
		_, err = r.client.DestroyNetwork(ctx, &pb.DestroyNetworkRequest{IsolationSpec: answer.GetIsolationSpec()})
		must.NoError(t, err)
		return *m.destroyed, *m.destroyed
	})
}

// ended makes a result one that a plugin can send: a signal has a code, and an unknown result is no result.
func ended(exit *driver.ExitResult) {
	if exit.Unknown = false; exit.Signal > 0 {
		exit.Code = 128 + exit.Signal
	}
}

// The same for device plugins.
func TestWire_eachFieldOfADevicePlugin(t *testing.T) {
	t.Parallel()
	m := &mirror{}
	conn := served(t, func(s *grpc.Server) { sdk.RegisterDevice(s, mirroredDevices{m}) })
	d := &devices{client: devicepb.NewDevicePluginClient(conn)}
	d.gone = make(chan struct{})
	ctx := t.Context()

	cross(t, func(want *cluster.DeviceGroup) (got, same cluster.DeviceGroup) {
		m.groups = []*cluster.DeviceGroup{want}
		must.ErrorIs(t, d.Fingerprints(ctx, func(groups []*cluster.DeviceGroup) { got = *groups[0] }), errEnded)
		return got, got
	})
	cross(t, func(want *device.Reservation) (device.Reservation, device.Reservation) {
		for i := range want.Mounts {
			want.Mounts[i].Propagation = "" // the protocol of device plugins does not have it
		}
		m.reservation = *want
		got, err := d.Reserve(ctx, []string{"1"})
		must.NoError(t, err)
		return got, got
	})
	cross(t, func(want *device.GroupStats) (got, same device.GroupStats) {
		m.stats = []device.GroupStats{*want}
		must.ErrorIs(t, d.Stats(ctx, time.Second, func(groups []device.GroupStats) { got = groups[0] }), errEnded)
		return got, got
	})
}

// cross sends values of a type to the other side, and compares what arrives twice. send may change a value that
// cannot be sent.
func cross[T any](t *testing.T, send func(want *T) (T, T)) {
	t.Helper()
	kind := reflect.TypeFor[T]()
	all := samples(kind, 0)
	whole := reflect.New(kind).Elem()
	for _, s := range all {
		merge(whole, s)
	}
	must.Greater(t, 1, len(all))
	for _, s := range append(all, whole) {
		want, is := s.Interface().(T)
		must.True(t, is)
		first, second := send(&want)
		for _, got := range []T{first, second} {
			must.Eq(t, leaves(reflect.ValueOf(want)), leaves(reflect.ValueOf(got)), must.Sprint(kind))
		}
	}
}

// maxNested bounds the depth of trees in samples.
const maxNested = 6

// samples returns values of a type in which one leaf is set, one value for each leaf.
func samples(kind reflect.Type, depth int) []reflect.Value {
	var all []reflect.Value
	add := func(set func(v reflect.Value)) {
		v := reflect.New(kind).Elem()
		set(v)
		all = append(all, v)
	}
	switch {
	case depth > maxNested:
		return nil
	case kind == reflect.TypeFor[time.Time]():
		return []reflect.Value{reflect.ValueOf(time.Unix(7, 9).UTC())}
	case kind == reflect.TypeFor[cluster.DeviceAttribute]():
		for _, a := range []cluster.DeviceAttribute{
			{Text: "x"},
			{Kind: cluster.AttributeInt, Int: 7, Unit: "MiB"},
			{Kind: cluster.AttributeFloat, Float: 7.5, Unit: "W"},
			{Kind: cluster.AttributeBool, Bool: true},
		} {
			all = append(all, reflect.ValueOf(a))
		}
		return all
	}
	switch kind.Kind() {
	case reflect.Bool:
		add(func(v reflect.Value) { v.SetBool(true) })
	case reflect.Int, reflect.Int64:
		add(func(v reflect.Value) { v.SetInt(7) })
	case reflect.Uint8: // an enum, all of which have this value
		add(func(v reflect.Value) { v.SetUint(2) })
	case reflect.Uint64:
		add(func(v reflect.Value) { v.SetUint(7) })
	case reflect.Float64:
		add(func(v reflect.Value) { v.SetFloat(7.5) })
	case reflect.String:
		add(func(v reflect.Value) { v.SetString("x") })
	case reflect.Struct:
		for i := range kind.NumField() {
			for _, s := range samples(kind.Field(i).Type, depth+1) {
				add(func(v reflect.Value) { v.Field(i).Set(s) })
			}
		}
	case reflect.Pointer:
		for _, s := range samples(kind.Elem(), depth+1) {
			add(func(v reflect.Value) { v.Set(reflect.New(kind.Elem())); v.Elem().Set(s) })
		}
	case reflect.Slice:
		for _, s := range samples(kind.Elem(), depth+1) {
			add(func(v reflect.Value) { v.Set(reflect.Append(v, s)) })
		}
	case reflect.Map:
		for i, s := range samples(kind.Elem(), depth+1) {
			add(func(v reflect.Value) {
				v.Set(reflect.MakeMap(kind))
				v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", i)).Convert(kind.Key()), s)
			})
		}
	default:
		panic("no sample of " + kind.String())
	}
	return all
}

// merge sets the leaves of one value in another one.
func merge(into, from reflect.Value) {
	switch {
	case from.IsZero():
	case into.IsZero():
		into.Set(from)
	case from.Kind() == reflect.Struct && from.Type() != reflect.TypeFor[time.Time]():
		for i := range from.NumField() {
			merge(into.Field(i), from.Field(i))
		}
	case from.Kind() == reflect.Slice:
		into.Set(reflect.AppendSlice(into, from))
	case from.Kind() == reflect.Map:
		merged := reflect.MakeMap(into.Type())
		for _, m := range []reflect.Value{into, from} {
			for _, key := range m.MapKeys() {
				merged.SetMapIndex(key, m.MapIndex(key))
			}
		}
		into.Set(merged)
	case from.Kind() == reflect.Pointer:
		merged := reflect.New(into.Type().Elem())
		merged.Elem().Set(into.Elem())
		merge(merged.Elem(), from.Elem())
		into.Set(merged)
	}
}

// leaves returns the leaves of a value that are not zero, by their path. Empty and nil are the same.
func leaves(v reflect.Value) map[string]string {
	all := map[string]string{}
	below := func(name string, v reflect.Value) {
		for path, leaf := range leaves(v) {
			all[strings.TrimSuffix(name+"."+path, ".")] = leaf
		}
	}
	switch at, is := v.Interface().(time.Time); {
	case is:
		return map[string]string{"": at.UTC().String()}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				below(v.Type().Field(i).Name, v.Field(i))
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			below(fmt.Sprint(i), v.Index(i))
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			below(key.String(), v.MapIndex(key))
		}
	case v.Kind() == reflect.Pointer:
		maps.Copy(all, leaves(v.Elem()))
	default:
		return map[string]string{"": fmt.Sprint(v)}
	}
	return all
}
