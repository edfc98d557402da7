// Package drawing has the parts of a picture over time: a [Scale] of time, lanes for a terminal
// ([Terminal]), and an SVG page ([Page]) with its style sheet. Package timeline draws simulated runs with
// it, and "nodedrain drain show" draws the journal of a drain.
//
// Equal calls give equal bytes. The package reads no clock.
package drawing
