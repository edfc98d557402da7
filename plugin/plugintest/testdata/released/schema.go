package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"

// Parts of schemas.

func attr(kind string, required bool) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Attr{Attr: &hclspec.Attr{Type: kind, Required: required}}}
}

func object(parts map[string]*hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Object{Object: &hclspec.Object{Attributes: parts}}}
}

func block(parts map[string]*hclspec.Spec) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_BlockValue{BlockValue: &hclspec.Block{Nested: object(parts)}}}
}

func or(primary *hclspec.Spec, literal string) *hclspec.Spec {
	return &hclspec.Spec{Block: &hclspec.Spec_Default{Default: &hclspec.Default{
		Primary: primary, Default: &hclspec.Spec{Block: &hclspec.Spec_Literal{Literal: &hclspec.Literal{Value: literal}}},
	}}}
}

// podmanSchema is the config of podman. The default of volumes omits an attribute.
func podmanSchema() *hclspec.Spec {
	return object(map[string]*hclspec.Spec{
		"socket_path": attr("string", false),
		"gc":          or(block(map[string]*hclspec.Spec{"container": or(attr("bool", false), "true")}), "{ container = true }"),
		"volumes":     or(block(map[string]*hclspec.Spec{"enabled": or(attr("bool", false), "true"), "selinuxlabel": attr("string", false)}), "{ enabled = true }"),
	})
}

// podmanTask is the config of a task. Its labels are a list of maps.
func podmanTask() *hclspec.Spec {
	return object(map[string]*hclspec.Spec{
		"image": attr("string", true), "command": attr("string", false), "args": attr("list(string)", false),
		"labels": attr("list(map(string))", false), "volumes": attr("list(string)", false), "tty": attr("bool", false),
	})
}

func commandTask() *hclspec.Spec {
	return object(map[string]*hclspec.Spec{"command": attr("string", true), "args": attr("list(string)", false)})
}
