package shim

import "os"

// A process that is a shim never reaches main. The initialization of all packages that this program
// has would cost it a third of its memory.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Argument {
		os.Exit(Main())
	}
}
