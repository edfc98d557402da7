// Package machine is a node of a simulated cluster that runs the real client: the core of package
// client with the doubles of package scripted, in virtual time. A [Node] is the shell of its core.
// When the client dies, the Node continues: the next client finds its disk, its processes and its
// drivers.
//
// A Node has its own clock. Its owner calls [Node.Advance] at the time that the last call returned,
// or earlier. Events of the same time run in random order, so that each seed tests another order.
//
// A node may have device plugins, the doubles of package plugin/device/scripted: see [Equipment].
//
// It may have storage, the double of package plugin/storage/scripted: see [StorageOptions]. Its
// storage plugins are tasks of the node.
//
// Each allocation of a node has an ephemeral disk: see [Disks]. The owner of the node moves the data of a
// disk to another node: see [Copy] and [SendData].
//
// An [Observer] gets the events of the node. The observer of package onnode judges the client.
package machine
