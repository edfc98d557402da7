// Package datamove is the servers' side of the moves of the data of ephemeral disks. [Find] finds the
// allocation whose data a replacement takes. [Copies] bounds the copies of a server: their number, their
// rate, and the time without progress.
package datamove
