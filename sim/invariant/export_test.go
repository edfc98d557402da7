package invariant

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// The digests of rows.
func DigestNode(n *cluster.Node) uint64        { return uint64(digestNode(n)) }
func DigestDrain(d *cluster.Drain) uint64      { return uint64(digestDrain(d)) }
func DigestJob(j *cluster.Job) uint64          { return uint64(digestJob(j)) }
func DigestAlloc(a *cluster.Allocation) uint64 { return uint64(digestAlloc(a)) }
func DigestEval(e *cluster.Evaluation) uint64  { return uint64(digestEval(e)) }
