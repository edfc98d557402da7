// Package machine is a node of a simulated cluster that runs the real client: the core of package
// client over the doubles of package scripted, in virtual time. A [Node] is the shell of its core. It
// survives the core: its disk, its processes and its drivers are what the next client finds.
//
// A Node has a clock of its own. Its owner calls [Node.Advance] at the time that the last call
// returned, or earlier. The order of events of one time is drawn from a stream of random numbers, so
// that each seed has another order.
//
// A node may have device plugins, the doubles of package client/device/scripted: see [Equipment].
//
// It may have storage, the double of package client/volume/scripted: see [StorageOptions]. Its storage
// plugins are tasks of the node.
//
// An [Observer] sees what the node does. Package onnode has one that judges the client.
package machine
