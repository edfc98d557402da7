package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

type groups = []*cluster.DeviceGroup

// lampFaults are the faults of device plugins by their names. The name "lamps" has no fault.
func lampFaults() map[string]lampFault {
	all := map[string]lampFault{"lamps": {}}
	for _, some := range []map[string]lampFault{faultsOfFingerprints(), faultsOfGroups(), faultsOfIDs(), faultsOfReserve(), faultsOfTasks(), faultsOfStats()} {
		for name, f := range some {
			all[name] = f
		}
	}
	return all
}

func faultsOfFingerprints() map[string]lampFault {
	return map[string]lampFault{
		"late-lamps": {fingerprints: func(l *lamps, ctx context.Context, report func(groups)) error {
			if l.note("stream") == 0 {
				time.Sleep(2 * time.Second)
			}
			return l.watch(ctx, report)
		}},
		"quiet-without-lamps": {fingerprints: func(l *lamps, ctx context.Context, report func(groups)) error {
			return l.watch(ctx, func(g groups) {
				if len(g) > 0 {
					report(g)
				}
			})
		}},
		"reports-once": {fingerprints: func(l *lamps, ctx context.Context, report func(groups)) error {
			report(l.groups())
			<-ctx.Done()
			return ctx.Err()
		}},
		"ends-after-a-change": {fingerprints: func(l *lamps, ctx context.Context, report func(groups)) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			before := l.ids()
			_ = l.watch(ctx, func(g groups) {
				if slices.Equal(before, l.ids()) {
					report(g)
					return
				}
				cancel(errLamp)
			})
			return errors.New("the devices have changed")
		}},
		"one-stream": {fingerprints: func(l *lamps, ctx context.Context, report func(groups)) error {
			if l.note("stream") > 0 {
				return errors.New("there is a stream already")
			}
			return l.watch(ctx, report)
		}},
	}
}

func faultsOfGroups() map[string]lampFault {
	// add adds a group that is wrong.
	add := func(bad func() *cluster.DeviceGroup) lampFault {
		return lampFault{groups: func(_ *lamps, g groups) groups {
			if len(g) == 0 {
				return nil
			}
			return append(g, bad())
		}}
	}
	kind := cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L2"}
	return map[string]lampFault{
		"id-twice": add(func() *cluster.DeviceGroup {
			return &cluster.DeviceGroup{Kind: kind, Devices: []cluster.Device{{ID: "x"}, {ID: "x"}}}
		}),
		"empty-id": add(func() *cluster.DeviceGroup {
			return &cluster.DeviceGroup{Kind: kind, Devices: []cluster.Device{{}}}
		}),
		"no-vendor": add(func() *cluster.DeviceGroup {
			return &cluster.DeviceGroup{Kind: cluster.DeviceKind{Type: "lamp", Name: "L2"}, Devices: []cluster.Device{{ID: "x"}}}
		}),
		"two-truths": {groups: func(_ *lamps, g groups) groups {
			other := func(i int64) *cluster.DeviceGroup {
				return &cluster.DeviceGroup{Kind: kind, Attributes: map[string]cluster.DeviceAttribute{"power": {Kind: cluster.AttributeInt, Int: i}}}
			}
			return append(g, other(1), other(2))
		}},
		// The ids are those of this process.
		"new-ids": {
			groups: func(_ *lamps, g groups) groups {
				for _, group := range g {
					for i := range group.Devices {
						group.Devices[i].ID = fmt.Sprintf("%s-%d", group.Devices[i].ID, os.Getpid())
					}
				}
				return g
			},
			reserve: func(l *lamps, ids []string) (device.Reservation, error) {
				_, err := l.reserve(withoutPID(ids))
				if err != nil || len(ids) == 0 {
					return device.Reservation{}, err
				}
				return device.Reservation{Env: map[string]string{"LAMPS": strings.Join(ids, ",")}}, nil
			},
			stats: func(l *lamps, ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
				return l.measure(ctx, interval, func([]device.GroupStats) { report(nil) })
			},
		},
	}
}

func faultsOfIDs() map[string]lampFault {
	return map[string]lampFault{
		// The ids are the positions in the list.
		"positions": {
			groups: func(_ *lamps, g groups) groups {
				for _, group := range g {
					for i := range group.Devices {
						group.Devices[i].ID = fmt.Sprint(i)
					}
				}
				return g
			},
			reserve: func(l *lamps, ids []string) (device.Reservation, error) {
				all := l.ids()
				var own []string
				for _, id := range ids {
					i, err := strconv.Atoi(id)
					if err != nil || i >= len(all) {
						return device.Reservation{}, fmt.Errorf("unknown device %q", id)
					}
					own = append(own, all[i])
				}
				return l.answer(own), nil
			},
			stats: func(l *lamps, ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
				return l.measure(ctx, interval, func([]device.GroupStats) { report(nil) })
			},
		},
		// The ids have no "lamp-". They are so short that they could be other words.
		"gives-all-of-short-ids": {
			groups: func(_ *lamps, g groups) groups {
				for _, group := range g {
					for i := range group.Devices {
						group.Devices[i].ID = group.Devices[i].ID[len("lamp-"):]
					}
				}
				return g
			},
			reserve: func(l *lamps, ids []string) (device.Reservation, error) {
				var all []string
				for _, id := range l.ids() {
					all = append(all, id[len("lamp-"):])
				}
				for _, id := range ids {
					if !slices.Contains(all, id) {
						return device.Reservation{}, fmt.Errorf("unknown device %q", id)
					}
				}
				if len(ids) == 0 {
					return device.Reservation{}, nil
				}
				return device.Reservation{Env: map[string]string{"LAMPS": strings.Join(all, ",")}}, nil
			},
			stats: func(l *lamps, ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
				return l.measure(ctx, interval, func([]device.GroupStats) { report(nil) })
			},
		},
	}
}

// withoutPID returns ids without the end that "new-ids" has added.
func withoutPID(ids []string) []string {
	var own []string
	for _, id := range ids {
		own = append(own, strings.TrimSuffix(id, fmt.Sprintf("-%d", os.Getpid())))
	}
	return own
}

func faultsOfReserve() map[string]lampFault {
	return map[string]lampFault{
		"takes-any-id": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			return l.answer(ids), nil
		}},
		"takes-the-first-id-only": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			if _, err := l.reserve(ids[:min(1, len(ids))]); err != nil {
				return device.Reservation{}, err
			}
			return l.answer(ids), nil
		}},
		"panics-at-strangers": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if err != nil {
				panic("this lamp does not exist")
			}
			return r, nil
		}},
		"refuses-none": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			if len(ids) == 0 {
				return device.Reservation{}, errors.New("there is nothing to reserve")
			}
			return l.reserve(ids)
		}},
		"gives-all": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if err == nil && len(ids) > 0 {
				r = l.answer(l.ids())
			}
			return r, err
		}},
		"gives-nothing": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			_, err := l.reserve(ids)
			return device.Reservation{}, err
		}},
		"gives-another": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if all := l.ids(); err == nil && len(ids) == 1 {
				r = l.answer([]string{all[(slices.Index(all, ids[0])+1)%len(all)]})
			}
			return r, err
		}},
		"has-owners": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if key := strings.Join(ids, ","); err == nil && len(ids) > 0 && l.note(key) > 0 {
				return device.Reservation{}, errLamp
			}
			return r, err
		}},
		"counts": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if err == nil && len(ids) > 0 {
				r.Env["TIME"] = fmt.Sprint(l.note("reserve"))
			}
			return r, err
		}},
		"one-path": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			for i := range r.Devices {
				r.Devices[i].TaskPath = "/dev/lamp"
			}
			return r, err
		}},
		"one-at-a-time": {reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if err == nil && len(ids) > 1 {
				return device.Reservation{}, errors.New("one lamp at a time")
			}
			return r, err
		}},
	}
}

func faultsOfTasks() map[string]lampFault {
	change := func(change func(*device.Reservation)) lampFault {
		return lampFault{reserve: func(l *lamps, ids []string) (device.Reservation, error) {
			r, err := l.reserve(ids)
			if err == nil && len(ids) == 1 {
				change(&r)
			}
			return r, err
		}}
	}
	return map[string]lampFault{
		"relative-path": change(func(r *device.Reservation) {
			r.Mounts = append(r.Mounts, driver.Mount{TaskPath: "lib", HostPath: "/usr/lib"})
		}),
		"unknown-permissions": change(func(r *device.Reservation) { r.Devices[0].Permissions = "all" }),
		"no-variable":         change(func(r *device.Reservation) { r.Env["A=B"] = "c" }),
	}
}

func faultsOfStats() map[string]lampFault {
	return map[string]lampFault{
		"measures-once": {stats: func(l *lamps, ctx context.Context, _ time.Duration, report func([]device.GroupStats)) error {
			report(statsOf(l.ids()))
			<-ctx.Done()
			return ctx.Err()
		}},
		"measures-strangers": {stats: func(_ *lamps, ctx context.Context, _ time.Duration, report func([]device.GroupStats)) error {
			report(statsOf([]string{"stranger"}))
			<-ctx.Done()
			return ctx.Err()
		}},
		"cannot-measure": {stats: func(*lamps, context.Context, time.Duration, func([]device.GroupStats)) error {
			return errors.New("the meter is broken")
		}},
		"takes-any-config": {configure: func(l *lamps, config []byte) error {
			_ = l.configure(config)
			return nil
		}},
	}
}
