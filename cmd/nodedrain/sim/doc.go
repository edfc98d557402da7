// Package sim has the commands that simulate clusters.
package sim
