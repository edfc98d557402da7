// Package volumes contains the rules of volumes: which node and which allocation may use a volume,
// when a claim ends, and which storage plugins a cluster has. The scheduler, the FSM, the leader
// and the API use only these rules.
//
// # Which allocation may use a volume
//
// The entry of a plan creates the claims of the allocations that it places, so two plans never take
// the same last claim. [Book.Refusal] checks a placement when it is planned, and again when it is
// applied. All claims of a volume have the same access and attachment modes. A single-node mode
// allows one claim, multi-node-single-writer allows one claim that writes.
//
// # When a claim ends
//
//	taken ─▶ unpublishing ─▶ node detached ─▶ (controller detached) ─▶ freed
//
// The claim goes to node detached when the volume is certainly off the node. There are three
// reasons: the client reports it, by a terminal report that does not name the volume or by a
// separate request; or [ExpiryOf] permits it; or an operator forces it. If no controller has
// attached the volume, the claim is then freed. Otherwise it waits until a controller has detached
// the volume, unless another allocation on the node still uses the volume.
//
// # Which controller is called
//
// [Due] returns the calls of controllers that claims wait for. The leader makes these calls, and
// the answers change the claims. A [Caller] decides which calls start, and when failed calls are
// retried.
//
// Nothing here blocks or reads a clock. Times are parameters.
package volumes
