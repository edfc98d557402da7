// Package config reads the configuration file of a node's client, in HCL or JSON. docs/client.md
// describes every key.
//
// An error names the file, the line and the key of each mistake.
package config
