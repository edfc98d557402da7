// Package volumes holds the rules of volumes: which node and which allocation may use one, when a
// claim is over, and which storage plugins a cluster has. The scheduler, the state machine, the leader
// and the API use these rules and no others.
//
// # Who may use a volume
//
// A plan that places an allocation claims its volumes in the entry of the plan, so two plans never
// take the last claim. [Book.Refusal] judges a placement when it is planned and again when it is
// applied. All claims of a volume have the same access and attachment modes. A single-node mode has
// one claim, multi-node-single-writer has one that writes.
//
// # When a claim is over
//
//	taken ─▶ unpublishing ─▶ node detached ─▶ (controller detached) ─▶ freed
//
// The claim goes to node detached when the volume is surely off the node: the client says so, by a
// terminal report that names no such volume or by a request of its own; or [Unreachable] holds; or an
// operator forces it. A claim that no controller attached is then freed. Otherwise it waits for the
// controller, unless another allocation on the node still uses the volume.
//
// # Which controller is called
//
// [Due] returns the calls of controllers that claims wait for. The leader makes them, and their answers
// are changes of the claims. A [Caller] says which of them begin, and when those that failed are repeated.
//
// Nothing here blocks or reads a clock. Times are parameters.
package volumes
