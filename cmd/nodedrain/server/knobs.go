package server

import (
	"fmt"
	"strings"

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

// knobHelp returns the help of the flags of knobs.
func knobHelp() string {
	const indent, width = "                    ", 88
	var text strings.Builder
	for _, k := range operatorKnobs(&drainer.NodeDrainerConfig{}) {
		fmt.Fprintf(&text, "  -%s%s VALUE\n", knobPrefix, k.Name)
		line := indent[1:]
		for word := range strings.FieldsSeq(fmt.Sprintf("%s It must be %s. Default: %s.", k.Text, k.Value.Bounds(), k.Value.Default())) {
			if len(line)+1+len(word) > width {
				text.WriteString(line + "\n")
				line = indent[1:]
			}
			line += " " + word
		}
		text.WriteString(line + "\n")
	}
	return text.String()
}
