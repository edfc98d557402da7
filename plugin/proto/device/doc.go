// Package device is the service of device plugins. Its code is generated from device.proto.
package device
