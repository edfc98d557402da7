// Command released behaves as released plugins do, with everything that differs from the rules of
// this repository. It is for tests with a real client. Its arguments are the name of a plugin and a
// folder, which stands for the machine: its devices and its containers.
//
//	nvidia           device plugin 1.1.0: whole buffers of C as bus ids, reports of changes only
//	skeleton-device  device plugin: reports of changes only
//	podman           driver 0.5.2: a default that omits attributes, WaitTask answers early
//	lxc              driver 7f2a459: keeps containers over its own death
//	skeleton         driver: cannot take over tasks
package main

import (
	"fmt"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: released NAME FOLDER")
		os.Exit(2)
	}
	name, dir := os.Args[1], os.Args[2]
	switch name {
	case "nvidia":
		sdk.ServeDevice(nvidia(dir))
	case "skeleton-device":
		sdk.ServeDevice(skeletonDevice(dir))
	case "podman":
		sdk.Serve(podman(dir))
	case "lxc":
		sdk.Serve(lxc(dir))
	case "skeleton":
		sdk.Serve(skeleton(dir))
	default:
		fmt.Fprintf(os.Stderr, "unknown plugin %q\n", name)
		os.Exit(2)
	}
}
