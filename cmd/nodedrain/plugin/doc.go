// Package plugin serves the drivers of this program, tests plugins and shows storage plugins.
package plugin
