// Package feasible checks whether a group may run on a node: its constraints, drivers, kill
// timeouts and devices. It also chooses devices. It does not check the node pool, the datacenter,
// the node class, the status of the node and its free resources. The scheduler and the HTTP API use
// it.
//
// A target of a constraint is a text, or one of these names of a fact:
//
//	${attr.NAME}            an attribute of the node, or of one of its drivers
//	${driver.DRIVER}        1 if the driver can start tasks
//	${driver.DRIVER.NAME}   an attribute driver.DRIVER.NAME of the driver
//	${meta.NAME}            metadata of the node
//	${node.unique.id}, ${node.unique.name}, ${node.datacenter}, ${node.class}, ${node.pool}
//
// A fact that the node does not have is not set. A constraint on it is false, except with != and
// is_not_set.
//
// Constraints and affinities of requests for devices have other names:
//
//	${device.attr.NAME}     an attribute of all devices of a kind. Numbers compare with their units
//	${device.vendor}, ${device.type}, ${device.model}
//	${device.ids}           the id of one device
package feasible
