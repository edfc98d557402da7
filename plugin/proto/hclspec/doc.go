// Package hclspec has the messages of schemas of configs. Its code is generated from hclspec.proto.
package hclspec
