// Command csi is an example of a storage plugin for CSI 1.13. Its volumes are folders of this
// machine, which it bind-mounts. It can also check its caller: in the strict mode it refuses every
// call that is out of order. And it can inject faults. The client's tests use all of this.
//
// # To run it
//
// It needs Linux. Every role except controller also needs the right to mount (root). To run it
// alone:
//
//	CSI_ENDPOINT=unix:///tmp/csi.sock csi -root /srv/volumes -create web
//
// A controller and the nodes of a machine may be one process (monolith) or several processes with
// the same root. All of them must run in the same mount namespace. Several nodes on one machine
// need different -node-id.
//
//	-type ROLE       node, controller or monolith, which is both (monolith)
//	-endpoint SOCKET the unix socket: a path, or unix:// and a path (the value of CSI_ENDPOINT)
//	-root FOLDER     the volumes and what the plugin keeps about them; required
//	-node-id ID      the id of this node (the host name)
//	-name NAME       the name of the plugin (bind.csi.nodedrain)
//	-create NAMES    create volumes at the start, unless they exist: names with commas between them
//	-strict LOG      the strict mode, with its log
//	-faults FILE     the faults
//
// Only this user and root may use the socket. After SIGTERM or SIGINT the program exits when the
// calls in flight have ended, or after 3 s. Mounts stay, and the next process continues with them.
// The process has no state in memory: its state is in the root (see store.go) and in the mount
// table.
//
// # What it does
//
// The name of a volume is its id. A volume has a capacity, which is not enforced. NodeStageVolume
// mounts the volume's folder at the staging path. NodePublishVolume mounts the staging path at the
// target, read only if the request or the access mode states it. All calls may be repeated. While a
// call of a volume is in flight, another call of the same volume is answered with Aborted. The five
// access modes for one and for many nodes are enforced. Secrets, parameters and contexts are not
// used, and appear in no log.
//
// If an unmount fails because a process uses the mount, the answer is Internal, with the path.
// Nothing else has changed, and the caller may repeat the call.
//
// # Strict mode
//
// These calls are answered with FailedPrecondition:
//
//   - NodeStageVolume and NodePublishVolume for a node that the volume is not published to by a
//     controller
//   - NodePublishVolume from a path where the volume is not staged
//   - NodeUnstageVolume of a path that is still published at a target
//   - ControllerUnpublishVolume from a node where the volume is staged or published
//   - DeleteVolume of a volume that is published to a node, or staged or published on one
//
// order.go contains the rules. Without the strict mode the second call is also an error, and a
// mounted volume is not deleted. The other calls are then allowed, because most plugins allow them.
//
// The log has a line of JSON for each call, which is on the disk before the call is answered. A
// call whose program was killed has no line. The keys are began, time (of the answer), call,
// volume, node, staging, target, verdict, code (of the answer) and error. The verdict is "in
// order", "out of order", "in flight" (another call of the volume was), "abandoned" (another call
// was in flight, and its caller had given up) or "invalid" (the request has no meaning). A caller
// is correct if no verdict is "out of order" or "in flight".
//
// # Faults
//
// The plugin reads the file when a call arrives. The file may change or be missing. It is a JSON list,
// and the first entry that matches a call is used. To replace it while calls arrive, write another file
// and rename it.
//
//	[
//	  {"call": "NodeUnpublishVolume", "delay": "5s"},
//	  {"call": "NodeUnstageVolume", "fail": 3}
//	]
//
// An entry without call matches all of them. A call waits for delay, unless its caller cancels it. The
// next fail calls are answered with Internal and have no effect, or all calls if fail is -1. A change
// of the file restarts the count.
package main
