// Package claimed compares the claims of volumes in a simulated world with the mount tables of all
// machines. A [Judge] reads the rows of the state and the mount tables of the doubles. It shares no
// code with the servers and the client.
//
// The guarantee is S3. S1 is the guarantee of the scheduler, and S2 is the guarantee of the garbage
// collection. Package onnode judges each node separately.
//
//   - A volume that a machine has published for an allocation has a claim of this allocation,
//     unless an operator has freed the claim by force, or the servers have freed it because they
//     could not reach the node.
//   - Two machines do not have a single-writer volume published for writing, with the same
//     exceptions.
//   - The state has no two claims of a volume that exclude each other.
//   - The servers free the claim of a writer on an unreachable node only after
//     stop_on_client_after, the stop time and a minute have passed since they marked the node down
//     or its row was deleted. At that time no task of the allocation runs, also if the client of the
//     node is dead.
//   - A volume of a storage plugin with controllers is on a node only while it is attached to the
//     node.
//   - A leader has one call of a controller in flight for a volume, and calls no controller to
//     detach a volume that is mounted. A call is done only if no other controller that can be called
//     may still undo it.
//   - A claim that a controller has detached ends only when the volume is detached, and a volume is
//     attached only to nodes that claim it. The calls of an earlier leader and of controllers that
//     cannot be called are excepted.
//   - The leader collects no allocation that claims a volume. When nothing more happens, a claim of an
//     allocation that does not exist is on a node that has the volume or is unreachable.
//   - An allocation that its client has reported as ended has no published volume, except volumes
//     that the report names. So a complete drain leaves no mount that is not named.
package claimed
