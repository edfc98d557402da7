// Package claimed checks the claims of volumes in a simulated world against the mount tables of all its
// machines. A [Judge] reads the rows of the state and the tables of the doubles. It shares no code with the
// product.
//
// The guarantee is S3. S1 is that of the scheduler, S2 that of the collection. Package onnode judges each node
// by itself.
//
//   - What a machine has published for an allocation is claimed for it, unless an operator has freed the claim
//     by force, or the servers because they could not reach the node.
//   - Two machines do not have a volume for one writer published to write, with the same exceptions.
//   - The state has no two claims of a volume that exclude each other.
//   - The servers free the claim of a writer on an unreachable node only when its client has had
//     stop_on_client_after, the stop time and a minute since they gave up the node or its row was deleted.
//   - A volume of a storage plugin with controllers is on a node only while it is attached to the node.
//   - An allocation that its client has reported as ended has nothing published, except for what the report
//     names. So a complete drain leaves no mount without a name.
package claimed
