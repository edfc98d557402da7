// Package chance is a fixture: steps that differ between two runs, or that read from outside.
package chance

import (
	crand "crypto/rand"
	"fmt"
	"math/rand"
	rand2 "math/rand/v2"
	"net"
	"os"
	"runtime"
	"time"
)

var host, _ = os.Hostname() // want "os.Hostname belongs to the package .*chance.T.Step → chance.host"

// T decides.
type T struct{ r *rand.Rand }

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	_ = rand.Int()         // want "math/rand.Int draws from the process's randomness"
	_, _ = crand.Read(nil) // want "crypto/rand.Read belongs to the package"
	_ = rand2.IntN(6)      // want "math/rand/v2.IntN draws from the process's randomness"
	_ = rand2.New(rand2.NewPCG(1, 2)).IntN(6)
	_ = t.r.Int()           // want "Rand\).Int belongs to the package"
	_ = os.Args             // want "os.Args belongs to the package"
	_, _ = os.Open(host)    // want "os.Open belongs to the package"
	_, _ = net.Dial("", "") // want "net.Dial belongs to the package"
	_ = runtime.NumCPU()    // want "runtime.NumCPU belongs to the package"
	fmt.Println(now)        // want "fmt.Println writes to the process's output"
	_ = fmt.Sprint(now)
	return now
}
