// Package schema checks and encodes configurations for plugins. A plugin describes its config and
// the config of its tasks by schemas (package plugin/proto/hclspec). A config is a JSON object, and
// the plugin gets it as msgpack.
//
// [Schema.Encode] has these steps. It replaces variables in the strings of the config (package
// plugin/taskenv). It decodes the result by the schema, and finds unknown and missing keys and
// wrong types. It encodes a map with every key of the schema, and nil for keys without a value.
// [Decode] is the opposite, for plugins written in Go.
//
// Schemas come from plugins and configs come from users. No schema and no config causes a panic.
package schema
