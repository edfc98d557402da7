package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/sdk"

// podmanSchema is the config of podman. The default of volumes omits an attribute.
func podmanSchema() *sdk.Spec {
	return sdk.Object(map[string]*sdk.Spec{
		"socket_path": sdk.Attribute("string", false),
		"gc":          sdk.Default(sdk.Block(sdk.Object(map[string]*sdk.Spec{"container": sdk.Default(sdk.Attribute("bool", false), "true")}), false), "{ container = true }"),
		"volumes":     sdk.Default(sdk.Block(sdk.Object(map[string]*sdk.Spec{"enabled": sdk.Default(sdk.Attribute("bool", false), "true"), "selinuxlabel": sdk.Attribute("string", false)}), false), "{ enabled = true }"),
	})
}

// podmanTask is the config of a task. Its labels are a list of maps.
func podmanTask() *sdk.Spec {
	return sdk.Object(map[string]*sdk.Spec{
		"image": sdk.Attribute("string", true), "command": sdk.Attribute("string", false), "args": sdk.Attribute("list(string)", false),
		"labels": sdk.Attribute("list(map(string))", false), "volumes": sdk.Attribute("list(string)", false), "tty": sdk.Attribute("bool", false),
	})
}

func commandTask() *sdk.Spec {
	return sdk.Object(map[string]*sdk.Spec{"command": sdk.Attribute("string", true), "args": sdk.Attribute("list(string)", false)})
}
