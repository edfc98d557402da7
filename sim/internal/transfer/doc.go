// Package transfer is the servers' side of the moves of data between the nodes of a simulated cluster. It
// finds the data and gives the turns by the rules of package httpapi/datamove. It moves counts of bytes in virtual
// time instead of bytes.
package transfer
