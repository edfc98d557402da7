// Package probe executes one run of a check: it replaces the variables of the check, finds the address
// of its port, and sends an HTTP request, opens a TCP connection, or runs a command in the task.
package probe
