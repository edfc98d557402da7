// Package connlimit limits the open connections of a server, in all and for each remote address.
// Package agent uses it for both ports. Begin with [New].
//
// A [Limiter] has a [Gate] for each kind of connection, with bounds of its own. So a flood of one
// kind uses no slot of another. An admitted connection counts until it is closed. It is idle or in
// use. At a bound, a gate closes the connection that has been idle for the longest time and admits
// the new one. It refuses the new one only if none is idle:
//
//   - at the bound of an address, only connections of that address are closed;
//   - at the bound of all, one of the address that has the most connections is closed, so an address
//     with few connections keeps them.
//
// An IPv6 address counts as its network of 64 bits: one host has all addresses of such a network.
package connlimit
