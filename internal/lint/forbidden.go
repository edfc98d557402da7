package lint

import (
	"go/types"
	"strings"
)

// The reasons. A finding has them after a name.
const (
	readsClock = "reads the clock: the time of a step is a parameter"
	waits      = "waits: deciding code returns the time of its next call"
	starts     = "starts a timer or a goroutine: only the shell around the steps does"
	isLocal    = "depends on the machine"
	anyOrder   = "visits a map in random order"
	prints     = "writes to the process's output"
)

// forbidden are functions, by full name, that deciding code must not use. It may use others of their
// packages.
var forbidden = map[string]string{
	"time.Now":   readsClock,
	"time.Since": readsClock,
	"time.Until": readsClock,

	"time.Sleep":          waits,
	"time.After":          starts,
	"time.AfterFunc":      starts,
	"time.NewTicker":      starts,
	"time.NewTimer":       starts,
	"time.Tick":           starts,
	"(*time.Timer).Reset": starts,
	"time.Local":          isLocal,
	"(time.Time).Local":   isLocal,
	"time.LoadLocation":   isLocal,

	"(*sync.WaitGroup).Wait": waits,
	"(*sync.WaitGroup).Go":   starts,
	"(*sync.Cond).Wait":      waits,
	"(*sync.Map).Range":      anyOrder,

	"fmt.Print":   prints,
	"fmt.Printf":  prints,
	"fmt.Println": prints,
	"fmt.Scan":    waits,
	"fmt.Scanf":   waits,
	"fmt.Scanln":  waits,

	"(*golang.org/x/time/rate.Limiter).Allow":      readsClock,
	"(*golang.org/x/time/rate.Limiter).Reserve":    readsClock,
	"(*golang.org/x/time/rate.Limiter).SetBurst":   readsClock,
	"(*golang.org/x/time/rate.Limiter).SetLimit":   readsClock,
	"(*golang.org/x/time/rate.Limiter).Tokens":     readsClock,
	"(*golang.org/x/time/rate.Limiter).Wait":       waits,
	"(*golang.org/x/time/rate.Limiter).WaitN":      waits,
	"(*golang.org/x/time/rate.Reservation).Cancel": readsClock,
	"(*golang.org/x/time/rate.Reservation).Delay":  readsClock,

	"(github.com/hashicorp/go-memdb.WatchSet).Watch":    waits,
	"(github.com/hashicorp/go-memdb.WatchSet).WatchCtx": waits,
	"(github.com/hashicorp/go-memdb.WatchSet).WatchCh":  starts,
}

// drawsGlobally reports whether the object is a function of math/rand that uses the global source. A
// seeded source gives the same numbers every time.
func drawsGlobally(o types.Object) bool {
	f, ok := o.(*types.Func)
	return ok && (f.Pkg().Path() == "math/rand" || f.Pkg().Path() == "math/rand/v2") &&
		f.Signature().Recv() == nil && !strings.HasPrefix(f.Name(), "New")
}
