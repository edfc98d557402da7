package live

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// faults are the armed faults. All goroutines may call strike.
type faults struct {
	random *random // never nil
	mu     sync.Mutex
	armed  []*setting.Armed // guarded by mu, with the elements
	// struck counts the strikes of each fault; guarded by mu.
	struck map[scenario.FaultName]int
	// ended says that all faults have ended; guarded by mu.
	ended bool
}

func newFaults(r *random) *faults { return &faults{random: r, struck: map[scenario.FaultName]int{}} }

// target is the subject of an opportunity.
type target = setting.Target

// arm arms a fault. If the fault strikes at once, the caller then calls strike.
func (f *faults) arm(s scenario.Fault) error {
	armed, err := setting.Arm(s, time.Now())
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, armed)
	return nil
}

// disarm ends all faults.
func (f *faults) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.ended = nil, true
}

// over reports whether all faults have ended.
func (f *faults) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// any reports whether any fault is armed.
func (f *faults) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed) > 0
}

// strike reports whether a fault of the name strikes at this opportunity, and draws its delay.
func (f *faults) strike(name scenario.FaultName, t target) (delay time.Duration, strikes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.armed = slices.DeleteFunc(f.armed, func(a *setting.Armed) bool { return a.Ended(now) })
	for _, a := range f.armed {
		if a.Name == name && a.Hits(t) && f.drawStrike(a, t) {
			a.Strike()
			f.struck[name]++
			return f.random.duration("delay/"+string(name), a.Delay), true
		}
	}
	return 0, false
}

// drawStrike draws, with the probability of a fault, whether the fault strikes. For an
// allocation, the result is the same as in the deterministic run.
func (f *faults) drawStrike(a *setting.Armed, t target) bool {
	switch {
	case a.Certain():
		return true
	case t.Alloc != nil:
		name := fmt.Sprintf("fault/%s/%s", a.Name, t)
		return world.Stream(f.random.seed, name).Float64() < a.Probability
	}
	return f.random.likely("fault/"+string(a.Name), a.Probability)
}
