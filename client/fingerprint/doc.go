// Package fingerprint reads the properties of a machine: its processors, memory, disk, kernel and
// name, as attributes and capacity of a node. Package client/node registers them. The names of the
// attributes are those that jobs of the reference use in constraints, for example
// ${attr.kernel.name}.
package fingerprint
