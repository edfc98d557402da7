// Package conformance runs the rules of a suite for plugins, in go test or for "nodedrain plugin
// test". Packages plugin/driver/drivertest, plugin/device/devicetest and plugin/storage/storagetest
// have the rules.
package conformance
