package server

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/knob"
)

// knobPrefix begins the name of each flag of a knob of the drainer.
const knobPrefix = "drain-"

// operatorKnobs returns the knobs of a configuration that have flags.
func operatorKnobs(c *drainer.NodeDrainerConfig) (knobs knob.List) {
	for _, k := range c.Knobs() {
		if k.Operator {
			knobs = append(knobs, k)
		}
	}
	return knobs
}

// knobOptions returns the flags of knobs.
func knobOptions(c *drainer.NodeDrainerConfig) (options cli.Options) {
	for _, k := range operatorKnobs(c) {
		text := fmt.Sprintf("%s It must be %s. Default: %s.", k.Text, k.Value.Bounds(), k.Value.Default())
		options = append(options, cli.Value(k.Value.Set, knobPrefix+k.Name+" VALUE", text))
	}
	return options
}
