package variables

import (
	"cmp"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// OfNode returns the value of a variable on a node, and false for one that is not set: attr.NAME,
// driver.NAME, meta.NAME, or a node.NAME other than node.region.
func OfNode(n *cluster.Node, variable string) (value string, set bool) {
	kind, name, _ := strings.Cut(variable, ".")
	switch kind {
	case "attr":
		if value, set = n.Attributes[name]; set {
			return value, true
		}
		if driver, is := strings.CutPrefix(name, "driver."); is {
			return ofDriver(n, driver)
		}
		return "", false
	case "driver":
		return ofDriver(n, name)
	case "meta":
		value, set = n.Meta[name]
		return value, set
	case "node":
		return ofNode(n, name)
	}
	return "", false
}

func ofNode(n *cluster.Node, name string) (value string, set bool) {
	switch name {
	case "unique.id":
		return string(n.ID), true
	case "unique.name":
		return n.Name, true
	case "datacenter":
		return n.Datacenter, true
	case "class":
		return n.NodeClass, n.NodeClass != ""
	case "pool":
		return cmp.Or(n.NodePool, cluster.DefaultNodePool), true
	}
	return "", false
}

// ofDriver returns a fact of a driver: "name", or "name.attribute".
func ofDriver(n *cluster.Node, fact string) (value string, set bool) {
	name, _, isAttribute := strings.Cut(fact, ".")
	d := n.Drivers[name]
	switch {
	case d == nil:
		return "", false
	case isAttribute:
		value, set = d.Attributes["driver."+fact]
		return value, set
	case n.HasDriver(name):
		return "1", true
	}
	return "", false
}
