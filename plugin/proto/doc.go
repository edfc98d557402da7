// Package proto holds the protocol of plugins: a .proto file, and the Go code generated from it, in
// one package for each service.
//
// Names of packages, services and messages and the numbers of fields are those that released
// plugins know: they must not change. The texts are our own. New fields do no harm: older plugins
// and hosts ignore them.
//
//   - base: every plugin: its identity, the schema of its config, its config.
//   - driver: tasks.
//   - device: devices.
//   - hclspec: schemas, which base and driver use.
//   - structs: attributes, measured values and the recoverable error.
//
// After a change of a .proto file run the command of buf.gen.yaml and commit the result.
package proto
