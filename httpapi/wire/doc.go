// Package wire holds the JSON of the HTTP API: one Go type for each shape, and the
// conversions from and to the types of package cluster. The server encodes with them, the
// command and simulated clients decode with them.
//
// # Compatible shapes
//
// [Node], [NodeListStub], [Allocation], [AllocationListStub], [Evaluation], [Job],
// [JobListStub], [JobSummary], the requests and responses of drain, eligibility and purge,
// and the shapes for agents and operators have the keys, the types and the meaning of the
// compatible API, so that its Go client decodes them:
//
//   - Keys are the Go field names: PascalCase.
//   - A duration is a whole number of nanoseconds.
//   - A time is RFC 3339 with nanoseconds in UTC; the zero time is null ([Time]).
//   - StatusUpdatedAt is in Unix seconds, CreateTime and ModifyTime in Unix
//     nanoseconds.
//   - A nil map or list is null. The JSON of an [Allocation] or an [Evaluation]
//     omits zero fields, the JSON of a [Node] has all fields.
//   - A pointer that the compatible API always fills is never nil in an answer, because its command
//     reads through it. A block that the servers do not keep has the values of what they do.
//   - A node's SecretID is never in an answer: the key has the empty string.
//
// A field that the compatible API does not have is documented as "ours", and is left out when
// it is zero.
//
// # Our shapes
//
// [NodeDrain], [DrainList], [Drain], [DrainProgress], [DrainAlloc], [DrainCulprit] and
// [DrainPlacement] show a [rules.Report] of a drain. [RegisterRequest], [HeartbeatResponse] and [AllocsRequest] are for clients,
// [JoinRequest] for a server that joins.
//
// # Conversions
//
// Functions that begin with New convert an object of package cluster to a shape. A method with the
// name of the object converts back, and returns an error if the shape is invalid. It drops fields
// that the object lacks: [Job.Job] describes which of them matter.
package wire
