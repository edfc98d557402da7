// Package driver is the service of task drivers. Its code is generated from driver.proto.
package driver
