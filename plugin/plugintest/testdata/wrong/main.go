// Command wrong is a plugin with one fault, which its argument names: "wrong FAULT". It is the mock
// driver otherwise, the raw_exec driver, or a device plugin whose devices are files. The tests of
// "nodedrain plugin test" run it.
package main

import (
	"fmt"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

func main() {
	d, err := mock.New(os.Exit)
	if err != nil || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wrong FAULT", err)
		os.Exit(1)
	}
	if fault, known := lampFaults()[os.Args[1]]; known {
		sdk.ServeDevice(&lamps{fault: fault, noted: map[string]int{}})
		return
	}
	if change, known := processFaults()[os.Args[1]]; known {
		sdk.Serve(wrongProcesses{rawexec.New(rawexec.Options{}), change})
		return
	}
	fault, known := faults()[os.Args[1]]
	if !known {
		fmt.Fprintln(os.Stderr, "unknown fault")
		os.Exit(1)
	}
	sdk.Serve(newWrong(d, fault))
}
