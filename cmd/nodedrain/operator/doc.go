// Package operator has the commands that save, restore and collect the state of the servers.
package operator
