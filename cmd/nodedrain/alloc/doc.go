// Package alloc has the commands about allocations and their tasks.
package alloc
