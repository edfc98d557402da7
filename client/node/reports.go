package node

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// pluginReport is the newest report of a plugin on disk.
type pluginReport struct {
	// Process has sent the report.
	Process process.Identity
	// Fingerprint is the report of a driver, or nil.
	Fingerprint *driver.Fingerprint `json:",omitempty"`
	// Devices are the valid devices in the report of a device plugin.
	Devices []*cluster.DeviceGroup `json:",omitempty"`
}

// reportWait is how long a plugin may take to send a first report on a stream. Later its last report
// counts.
const reportWait = time.Second

// reports are the reports of one process of a plugin. Many plugins send only changes: they send
// nothing on a second stream. So the client keeps the last report. One goroutine at a time uses it.
type reports[T any] struct {
	last *T // the newest report of the process, or nil
	// save writes a report durably, for the next client.
	save   func(T) error
	logger *slog.Logger
}

// listen calls open to open a stream, and report with each report. If the stream stays open and
// sends nothing, report gets the last report of the process. It returns the error of open.
func (r *reports[T]) listen(ctx context.Context, open func(context.Context, func(T)) error, report func(T)) error {
	received, end := make(chan T), make(chan error, 1)
	go func() {
		end <- open(ctx, func(value T) {
			select {
			case received <- value:
			case <-ctx.Done():
			}
		})
	}()
	timer := time.NewTimer(reportWait)
	defer timer.Stop()
	for {
		select {
		case value := <-received:
			timer.Stop()
			r.keep(value)
			report(value)
		case <-timer.C:
			if r.last != nil {
				report(*r.last)
			}
		case err := <-end:
			return err
		}
	}
}

func (r *reports[T]) keep(value T) {
	if r.last != nil && reflect.DeepEqual(*r.last, value) {
		return
	}
	r.last = &value
	if err := r.save(value); err != nil {
		r.logger.Warn("the report of a plugin was not written to the disk", "error", err)
	}
}

// reportingDriver is one process of a driver, with its reports.
type reportingDriver struct {
	driverInstance
	reports *reports[driver.Fingerprint]
}

// Fingerprints implements driver.Driver.
func (d *reportingDriver) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	return d.reports.listen(ctx, d.driverInstance.Fingerprints, report)
}

// reportingDevices is one process of a device plugin, with its reports.
type reportingDevices struct {
	deviceInstance
	reports *reports[[]*cluster.DeviceGroup]
}

// Fingerprints implements device.Plugin.
func (d *reportingDevices) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	return d.reports.listen(ctx, d.deviceInstance.Fingerprints, report)
}

// reportTable is the records of the newest reports, by the file of the plugin.
type reportTable = record.Table[pluginReport]

// withReports returns the process of a driver that keeps its reports. A process of an earlier client
// begins with the report on disk.
func (p *driverProgram) withReports(i driverInstance, r host.Record) driverInstance {
	all := &reports[driver.Fingerprint]{logger: p.logger, save: func(f driver.Fingerprint) error {
		return p.reports.Put(p.file, pluginReport{Process: r.Process, Fingerprint: &f})
	}}
	if p.report.Process == r.Process {
		all.last = p.report.Fingerprint
	}
	return &reportingDriver{i, all}
}

// withReports returns the process of a device plugin that keeps its reports. The process is new:
// see [host.Program.Launch].
func (p *deviceProgram) withReports(i deviceInstance, r host.Record) deviceInstance {
	return &reportingDevices{i, &reports[[]*cluster.DeviceGroup]{logger: p.logger, save: func(all []*cluster.DeviceGroup) error {
		good, _ := device.Check(all)
		return p.reports.Put(p.file, pluginReport{Process: r.Process, Devices: good})
	}}}
}

// lastDevices returns the newest devices of the device plugins in the reports of an earlier client,
// by plugin.
func (f *foundPlugins) lastDevices() map[string][]*cluster.DeviceGroup {
	all := make(map[string][]*cluster.DeviceGroup)
	for name, p := range f.devices {
		if d, is := p.(*deviceProgram); is && len(d.report.Devices) > 0 {
			// The disk is not trusted more than the plugin.
			all[name], _ = device.Check(d.report.Devices)
		}
	}
	return all
}
