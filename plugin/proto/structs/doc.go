// Package structs has the messages that drivers and device plugins share. Its code is generated
// from structs.proto.
package structs
