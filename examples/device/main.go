// Command device is an example of a device plugin. Its devices are files of the machine that its
// config names: device files, sockets, folders, or other files. It contains everything that every
// device plugin needs, and nothing more. docs/device-plugins.md explains it.
//
// config.go reads the config, and device.go implements the calls. To write another plugin, first
// change how device.go finds its devices, then what Reserve returns for them.
package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/sdk"

func main() { sdk.ServeDevice(&files{}) }
