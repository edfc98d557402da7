package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// group is a block of the config: the files of one kind of device.
type group struct {
	Vendor string `codec:"vendor"`
	Type   string `codec:"type"`
	Name   string `codec:"name"`
	// Paths are absolute paths, and patterns such as /dev/video*.
	Paths []string `codec:"paths"`
	// Attributes describe each of the files, for constraints of jobs.
	Attributes map[string]string `codec:"attributes"`
	// ReadOnly: tasks do not write to the files.
	ReadOnly bool `codec:"read_only"`
}

// schema is the schema of the plugin's config. The host checks the config against it.
func schema() *sdk.Spec {
	return sdk.Object(map[string]*sdk.Spec{
		"device": sdk.Blocks(sdk.Object(map[string]*sdk.Spec{
			"vendor":     sdk.Default(sdk.Attribute("string", false), `"local"`),
			"type":       sdk.Default(sdk.Attribute("string", false), `"file"`),
			"name":       sdk.Attribute("string", true),
			"paths":      sdk.Attribute("list(string)", true),
			"attributes": sdk.Attribute("map(string)", false),
			"read_only":  sdk.Attribute("bool", false),
		}), 0, 0),
	})
}

// read reads and checks a config. It checks the paths, because a schema cannot check them.
func read(config []byte) ([]group, error) {
	var c struct {
		Device []group `codec:"device"`
	}
	if err := sdk.Decode(config, &c); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, g := range c.Device {
		if names[g.Name] {
			return nil, fmt.Errorf("two devices have the name %q", g.Name)
		}
		names[g.Name] = true
		for _, path := range g.Paths {
			if !filepath.IsAbs(path) {
				return nil, fmt.Errorf("device %q: the path %q is not absolute", g.Name, path)
			}
			if _, err := filepath.Match(path, ""); err != nil {
				return nil, fmt.Errorf("device %q: the pattern %q: %w", g.Name, path, err)
			}
		}
	}
	return c.Device, nil
}

// isPattern reports whether a path of the config may match several files.
func isPattern(path string) bool { return strings.ContainsAny(path, `*?[\`) }
