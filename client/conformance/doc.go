// Package conformance runs the rules of a suite for plugins, in go test or for a command. Packages
// client/driver/drivertest and client/device/devicetest have the rules.
package conformance
