// Package wire holds what travels over the HTTP API: one Go type for each shape of
// JSON, and the conversions from and to the nouns of package cluster. The server
// encodes with them, the command and simulated clients decode with them.
//
// # Compatible shapes
//
// [Node], [NodeListStub], [Allocation], [AllocationListStub], [Evaluation], [Job],
// [JobListStub], [JobSummary], the requests and responses of drain, eligibility and
// purge, and what agents and operators ask for have the keys, the types and the
// meaning that the reference API gives them, so that its Go client decodes them:
//
//   - Keys are Go field names as they stand: PascalCase.
//   - A duration is a whole number of nanoseconds.
//   - A time is RFC 3339 with nanoseconds in UTC; the zero time is null ([Time]).
//   - StatusUpdatedAt is in Unix seconds, CreateTime and ModifyTime in Unix
//     nanoseconds.
//   - A nil map or list is null. Of an [Allocation] and an [Evaluation] every field
//     that is zero is left out; of a [Node] none is.
//   - A node's SecretID is never told: the key is there, and empty.
//
// A field that this system has and the reference does not stands beside the compatible
// ones, is said to be "ours", and is left out when it is zero.
//
// # Our shapes
//
// [NodeDrain], [DrainList], [Drain], [DrainProgress] and [DrainAlloc] tell of a drain
// what [rules.Report] knows. [RegisterRequest], [HeartbeatResponse] and
// [AllocsRequest] are for clients, [JoinRequest] for a server that wants to join.
//
// # Conversions
//
// New functions make a shape of a noun; methods named after the noun make it of a shape
// and say what is wrong with it. What the nouns do not have is lost on the way in:
// [Job.Job] says what of it matters.
package wire
