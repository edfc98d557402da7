// Command csi is a storage plugin that speaks CSI 1.13. Its volumes are folders on this machine, which
// it mounts where it is asked to. It is an example to copy, and it can judge its caller: in the strict
// mode it refuses every call that is out of order. It can also inject faults. The client's tests use
// all of this.
//
// # To run it
//
// It needs Linux, and for every role but controller the right to mount (root). Alone:
//
//	CSI_ENDPOINT=unix:///tmp/csi.sock csi -root /srv/volumes -create web
//
// A controller and the nodes of a machine may be one program (monolith) or several with one root. All
// of them run in one mount namespace. Several nodes on one machine have different -node-id.
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
// The socket is for this user and root alone. SIGTERM and SIGINT end the program after the calls in
// flight, or after 3 s. Mounts stay, and a program that starts later goes on with them: store.go says
// what is in the root, and the mount table says what is mounted. The program itself remembers nothing.
//
// # What it does
//
// The name of a volume is its id. A volume has a capacity, which nothing enforces. NodeStageVolume
// mounts the volume's folder at the staging path, NodePublishVolume mounts the staging path at the
// target, read only if the request or the access mode says so. All calls may be repeated. A second call
// of a volume while one is in flight is answered Aborted. The five access modes for one and for many
// nodes are enforced. Secrets, parameters and contexts are not used, and appear in no log.
//
// An unmount that fails because a process uses the mount is answered Internal, with the path. Nothing
// else has changed then, and the caller may repeat the call.
//
// # Strict mode
//
// These calls are answered FailedPrecondition:
//
//   - NodeStageVolume and NodePublishVolume for a node that the volume is not published to by a
//     controller
//   - NodePublishVolume from a path where the volume is not staged
//   - NodeUnstageVolume of a path that is still published at a target
//   - ControllerUnpublishVolume from a node where the volume is staged or published
//   - DeleteVolume of a volume that is published to a node, or staged or published on one
//
// order.go has the rules. Without the strict mode, the second is an error, too, and a volume that is
// mounted is not deleted. The others are allowed then, as most plugins allow them.
//
// The log has a line of JSON for each call, on disk before the call is answered. A call whose program
// was killed has no line. The keys are began, time (of the answer), call, volume, node, staging, target,
// verdict, code (of the answer) and error. The verdict is "in order", "out of order", "in flight"
// (another call of the volume was), "abandoned" (another call was in flight, and its caller had given
// up) or "invalid" (the request has no meaning). A caller is right if no verdict is "out of order" or
// "in flight".
//
// # Faults
//
// The file is read at each call, and may change or be missing. It is a JSON list; the first entry that
// fits a call is used. To replace it while calls arrive, write another file and rename it.
//
//	[
//	  {"call": "NodeUnpublishVolume", "volume": "web", "delay": "5s"},
//	  {"call": "NodeUnstageVolume", "fail": 3, "code": "UNAVAILABLE"},
//	  {"call": "NodeStageVolume", "hang": true, "after": true}
//	]
//
// Without call or volume an entry fits all. A call waits for delay. With hang it waits until its caller
// gives up or the file changes. The next fail calls are answered with code (INTERNAL), all of them if
// fail is -1; a change of the file starts the count again. With after the fault comes when the work is
// done, so that the caller does not know about it.
package main
