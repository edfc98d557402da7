// Package hclspec is the schema of a config. Its code is generated from hclspec.proto.
package hclspec
