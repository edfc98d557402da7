package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
)

// kind is a kind of plugin.
type kind struct {
	of     host.Type
	script script
	// calls are the calls with the names that they have in the protocol.
	calls map[string]func(ctx context.Context, i *host.Instance) error
	// crashes are the calls with each way to die.
	crashes []string
	// lasting is a call that lasts as long as the process, and its name.
	lasting func(ctx context.Context, i *host.Instance, began func()) error
	named   string
	// counts opens the stream of fingerprints, and reports the count in each.
	counts func(ctx context.Context, i *host.Instance, report func(int)) error
}

func kinds() map[string]kind {
	return map[string]kind{"driver": drivers(), "device plugin": devices()}
}

func drivers() kind {
	const id = "t"
	return kind{
		of: host.Driver, crashes: []string{"StartTask", "TaskStats"}, named: "WaitTask",
		lasting: func(ctx context.Context, i *host.Instance, began func()) error {
			if _, err := i.Driver().Start(ctx, &taskOfClient); err != nil {
				return err
			}
			began()
			_, err := i.Driver().Wait(ctx, taskOfClient.ID)
			return err
		},
		counts: func(ctx context.Context, i *host.Instance, report func(int)) error {
			return i.Driver().Fingerprints(ctx, func(f driver.Fingerprint) {
				var n int
				_, _ = fmt.Sscan(f.Attributes["driver.scripted.count"], &n)
				report(n)
			})
		},
		calls: map[string]func(ctx context.Context, i *host.Instance) error{
			"StartTask": func(ctx context.Context, i *host.Instance) error {
				_, err := i.Driver().Start(ctx, &driver.TaskConfig{ID: id})
				return err
			},
			"RecoverTask": func(ctx context.Context, i *host.Instance) error { return i.Driver().Recover(ctx, id, nil) },
			"WaitTask": func(ctx context.Context, i *host.Instance) error {
				_, err := i.Driver().Wait(ctx, id)
				return err
			},
			"StopTask":    func(ctx context.Context, i *host.Instance) error { return i.Driver().Stop(ctx, id, time.Second, "") },
			"DestroyTask": func(ctx context.Context, i *host.Instance) error { return i.Driver().Destroy(ctx, id, true) },
			"InspectTask": func(ctx context.Context, i *host.Instance) error {
				_, err := i.Driver().Inspect(ctx, id)
				return err
			},
			"SignalTask": func(ctx context.Context, i *host.Instance) error { return i.Driver().Signal(ctx, id, "SIGHUP") },
			"ExecTaskStreaming": func(ctx context.Context, i *host.Instance) error {
				_, err := i.Driver().ExecStreaming(ctx, id, []string{"ls"}, driver.ExecStreams{})
				return err
			},
			"Fingerprint": func(ctx context.Context, i *host.Instance) error {
				return i.Driver().Fingerprints(ctx, func(driver.Fingerprint) {})
			},
			"TaskEvents": func(ctx context.Context, i *host.Instance) error {
				return i.Driver().Events(ctx, func(driver.Event) {})
			},
			"TaskStats": func(ctx context.Context, i *host.Instance) error {
				return i.Driver().Stats(ctx, id, time.Second, func(driver.Usage) {})
			},
		},
	}
}

func devices() kind {
	return kind{
		of: host.Device, script: ofDevices(1), crashes: []string{"Fingerprint", "Reserve", "Stats"}, named: "Stats",
		lasting: func(ctx context.Context, i *host.Instance, began func()) error {
			return i.Device().Stats(ctx, time.Hour, func([]device.GroupStats) { began() })
		},
		counts: func(ctx context.Context, i *host.Instance, report func(int)) error {
			return i.Device().Fingerprints(ctx, func(g []*cluster.DeviceGroup) { report(int(g[0].Attributes["count"].Int)) })
		},
		calls: map[string]func(ctx context.Context, i *host.Instance) error{
			"Fingerprint": func(ctx context.Context, i *host.Instance) error {
				return i.Device().Fingerprints(ctx, func([]*cluster.DeviceGroup) {})
			},
			"Reserve": func(ctx context.Context, i *host.Instance) error {
				_, err := i.Device().Reserve(ctx, []string{"lamp-0"})
				return err
			},
			"Stats": func(ctx context.Context, i *host.Instance) error {
				return i.Device().Stats(ctx, time.Second, func([]device.GroupStats) {})
			},
		},
	}
}

// bench returns a bench of the kind for a script.
func (k kind) bench(t *testing.T, change func(*script)) *bench {
	t.Helper()
	s := k.script
	change(&s)
	b := newBench(t, s)
	b.options.Type = k.of
	return b
}

// everywhere makes a plugin misbehave at all its calls.
func (k kind) everywhere(how string) func(*script) {
	return func(s *script) {
		s.At = map[string]string{}
		for name := range k.calls {
			s.At[name] = how
		}
	}
}

// eachKind runs a test for each kind of plugin.
func eachKind(t *testing.T, test func(*testing.T, kind)) {
	t.Helper()
	t.Parallel()
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// A plugin that dies at a call ends this call, the calls in flight and the instance. The calls may
// have had an effect.
func TestCall_dies(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for name, call := range k.calls {
			for _, how := range []string{"die", "panic", "exit"} {
				if how != "die" && name != k.crashes[0] && name != k.crashes[len(k.crashes)-1] {
					continue
				}
				t.Run(name+" "+how, func(t *testing.T) {
					t.Parallel()
					b := k.bench(t, func(s *script) { s.At = map[string]string{name: how} })
					i := b.launch()
					var inFlight sync.WaitGroup
					if name != k.named && name != "StartTask" {
						began := make(chan struct{}, 1)
						inFlight.Go(func() {
							if err := k.lasting(t.Context(), i, func() { began <- struct{}{} }); driver.ClassOf(err) != driver.Gone {
								t.Errorf("the call in flight: %v", err)
							}
						})
						<-began
					}
					err := call(t.Context(), i)
					must.Eq(t, driver.Gone, driver.ClassOf(err), must.Sprint(err))
					must.ErrorContains(t, err, name)
					inFlight.Wait()
					<-i.Done()
					must.Eq(t, driver.Gone, driver.ClassOf(k.calls[k.crashes[1]](t.Context(), i)), must.Sprint("a later call"))
					must.False(t, b.alive(i.Record().Process.PID))
				})
			}
		}
	})
}

// A plugin that hangs at a call does not hold the caller. It can be killed.
func TestCall_hangs(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for _, how := range []string{"hang", "freeze"} {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				i := k.bench(t, k.everywhere(how)).launch()
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				var calls sync.WaitGroup
				for name, call := range k.calls {
					calls.Go(func() {
						if err := call(ctx, i); driver.ClassOf(err) != driver.Deadline || !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
				calls.Wait()
				must.NoError(t, i.Kill(t.Context()))
			})
		}
	})
}

// Errors have the classes that their codes, details and texts mean. At calls that are not about a task
// that runs, a text about an unknown task means something else.
func TestCall_classesOfErrors(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for how, class := range map[string]driver.Class{
			"recoverable":                      driver.Recoverable,
			"not recoverable":                  driver.Fatal,
			"some error":                       driver.Fatal,
			"unimplemented":                    driver.Unsupported,
			"task not found for given id":      driver.NotFound,
			"task does not exist: \"alloc/t\"": driver.NotFound,
		} {
			t.Run(how, func(t *testing.T) {
				t.Parallel()
				i := k.bench(t, k.everywhere(how)).launch()
				for name, call := range k.calls {
					expected := class
					if expected == driver.NotFound {
						switch {
						case name == "StartTask", name == "Reserve":
							expected = driver.Fatal
						case k.of == host.Device:
							continue
						}
					}
					err := call(t.Context(), i)
					must.Eq(t, expected, driver.ClassOf(err), must.Sprint(err))
					must.ErrorContains(t, err, name+": ")
				}
				must.NoError(t, i.Check(t.Context()), must.Sprint("an error ends nothing"))
			})
		}
	})
}

// A plugin that sends a million fingerprints is slowed down. The client receives few of them, in
// their order, and the other calls work.
func TestCall_aMillionFingerprints(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		b := k.bench(t, func(s *script) { s.Fingerprints = 1_000_000 })
		b.options.FingerprintInterval = 200 * time.Millisecond
		i := b.launch()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var counts []int
		began := time.Now()
		must.Error(t, k.counts(ctx, i, func(n int) {
			counts = append(counts, n)
			took := time.Since(began)
			must.GreaterEq(t, time.Duration(len(counts)-1)*b.options.FingerprintInterval, took)
			must.Less(t, 100*(1+int(took/time.Second)), n, must.Sprint("100 in each second that has begun"))
			must.NoError(t, i.Check(t.Context()))
			if len(counts) == 12 {
				cancel()
			}
		}))
		must.Eq(t, 0, counts[0])
		for n := range counts[1:] {
			must.Less(t, counts[n+1], counts[n])
		}
	})
}

// A stream of fingerprints that ends is an error, after the last message. The caller opens it again.
func TestCall_theStreamEnds(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		i := k.bench(t, func(s *script) { s.EndOfStream = true }).launch()
		reports := 0
		for range 2 {
			err := k.counts(t.Context(), i, func(int) { reports++ })
			must.ErrorContains(t, err, "the plugin has ended the stream")
			must.Eq(t, driver.Fatal, driver.ClassOf(err))
		}
		must.Eq(t, 2, reports)
		must.NoError(t, i.Check(t.Context()))
	})
}
