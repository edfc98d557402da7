// Package state is a fixture: package variables, fixed and not.
package state

import (
	_ "embed"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
)

type iface interface{ f() }

type impl struct{}

func (*impl) f() {}

var _ iface = (*impl)(nil)

var errFixed = errors.New("fixed")

var pattern = regexp.MustCompile("x")

//go:embed state.go
var text string

var table = map[string][]int{"a": {1}}

var rows = []struct{ name string }{{"a"}}

var excused = &impl{}

var answer = func() int { return 42 }

var (
	counter   = 0
	nothing   int                    // want "nothing: a package variable without a value can only be state"
	pointer         = &impl{}        // want "pointer: a package variable of a type that can change"
	ch              = make(chan int) // want "ch: a package variable of a type that can change"
	anything  iface = &impl{}        // want "anything: a package variable of a type that can change"
	mu              = sync.Mutex{}
	number          = atomic.Int64{}
	memo            = map[string]int{}
	list            = []int{1}
	addressed       = 1
	nested          = []struct{ n int }{{1}}
)

func use() {
	counter++               // want "counter: a package variable is written to"
	mu.Lock()               // want "mu: a package variable is written to"
	number.Add(1)           // want "number: a package variable is written to"
	memo["a"] = 1           // want "memo: a package variable is written to"
	delete(memo, "a")       // want "memo: a package variable is written to"
	list = append(list, 1)  // want "list: a package variable is written to"
	_ = &addressed          // want "addressed: a package variable is written to"
	nested[0].n = 2         // want "nested: a package variable is written to"
	for answer = range fs { // want "answer: a package variable is written to"
	}

	own := table["a"]
	own = append(own, 1)
	_, _, _, _, _ = own, rows, errFixed, pattern, text
}

func fs(yield func(func() int) bool) {}
