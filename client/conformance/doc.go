// Package conformance runs the rules of a suite for plugins, in go test or for "nodedrain plugin
// test". Packages client/driver/drivertest, client/device/devicetest and client/volume/volumetest
// have the rules.
package conformance
