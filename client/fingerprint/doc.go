// Package fingerprint finds out what a machine is and has: its processors, memory, disk, kernel and
// name, as attributes and capacity of a node. The names of the attributes are those that jobs of the
// reference use in constraints, for example ${attr.kernel.name}.
package fingerprint
