// Command device is a device plugin to copy. Its devices are files of the machine that its config names:
// device files, sockets, folders, or files of any kind. It shows all that a device plugin needs, and
// nothing that only some plugins need. docs/device-plugins.md explains it.
//
// config.go reads the config, device.go has the calls. To write another plugin, change how device.go
// finds its devices, then what Reserve returns for them.
package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/sdk"

func main() { sdk.ServeDevice(&files{}) }
