// Package schema gives a plugin its configuration. A plugin describes the config of its tasks, and
// its own, by a schema (package plugin/proto/hclspec). A config is a JSON object; the plugin gets it
// as msgpack.
//
// [Schema.Encode] does this in three steps. It replaces variables in the texts of the config
// (package client/taskenv). It decodes the result by the schema, which finds unknown and missing keys and
// wrong types. It encodes the value: a map with every key of the schema, nil for those without a
// value. [Decode] is the other side, for plugins written in Go.
//
// Schemas come from plugins and configs from users. Neither makes this package panic.
package schema
