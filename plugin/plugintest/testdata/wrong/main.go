// Command wrong is a task driver with one fault, which its argument names: "wrong FAULT". It is the
// mock driver otherwise. The tests of "nodedrain plugin test" run it.
package main

import (
	"fmt"
	"os"

	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

func main() {
	d, err := mock.New(os.Exit)
	if err != nil || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wrong FAULT", err)
		os.Exit(1)
	}
	fault, known := faults()[os.Args[1]]
	if !known {
		fmt.Fprintln(os.Stderr, "unknown fault")
		os.Exit(1)
	}
	sdk.Serve(newWrong(d, fault))
}
