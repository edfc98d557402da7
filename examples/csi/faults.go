package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault describes a fault of calls. The zero value means no fault.
type fault struct {
	// Call and Volume select the calls with the fault. Empty values select all.
	Call   string `json:"call"`
	Volume string `json:"volume"`
	// Delay is how long a call waits.
	Delay duration `json:"delay"`
	// Hang makes a call wait until its caller cancels it, or until the file changes.
	Hang bool `json:"hang"`
	// Fail is the number of calls that fail, counted from the change of the file. -1 means all
	// calls.
	Fail int `json:"fail"`
	// Code is the gRPC code of the failure. 0 means Internal.
	Code codes.Code `json:"code"`
	// After: the fault happens after the work of the call, so that the caller cannot determine that
	// the work is done.
	After bool `json:"after"`
	// generation counts the changes of the file. A fault of another generation is a different
	// fault.
	generation int
	index      int
}

// duration is a duration in the format of [time.ParseDuration].
type duration time.Duration

// UnmarshalText reads a duration.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err == nil && parsed < 0 {
		err = fmt.Errorf("%q is negative", text)
	}
	*d = duration(parsed)
	return err
}

// parseFaults reads a file of faults.
func parseFaults(text []byte) ([]fault, error) {
	var all []fault
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("read the faults: %w", err)
	}
	return all, nil
}

// faults are the faults in a file. The file is read at each call, so that a test can change it.
type faults struct {
	// path is empty if there are no faults.
	path string

	mu         sync.Mutex
	text       []byte      // guarded by mu, like all below
	generation int         // of the text
	failed     map[int]int // by index, the calls of this generation that failed
}

// poll is the time between two checks of the file by a call that hangs.
const poll = 20 * time.Millisecond

// find returns the first fault of a call.
func (f *faults) find(c call) (fault, error) {
	if f.path == "" {
		return fault{}, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault{}, fmt.Errorf("read the faults: %w", err)
	}
	var all []fault
	if len(text) > 0 {
		if all, err = parseFaults(text); err != nil {
			return fault{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !bytes.Equal(text, f.text) {
		f.text, f.failed = text, map[int]int{}
		f.generation++
	}
	for i, one := range all {
		if (one.Call == "" || one.Call == c.Name) && (one.Volume == "" || one.Volume == c.Volume) {
			one.generation, one.index = f.generation, i
			return one, nil
		}
	}
	return fault{}, nil
}

// act makes a call wait and fail as its fault states.
func (f *faults) act(ctx context.Context, c call, one fault) error {
	if one.Delay > 0 {
		if err := wait(ctx, time.Duration(one.Delay)); err != nil {
			return err
		}
	}
	for one.Hang {
		if err := wait(ctx, poll); err != nil {
			return err
		}
		now, err := f.find(c)
		if err != nil {
			return err
		}
		one.Hang = now.generation == one.generation
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.Fail == 0 || one.Fail > 0 && f.failed[one.index] >= one.Fail {
		return nil
	}
	f.failed[one.index]++
	code := one.Code
	if code == codes.OK {
		code = codes.Internal
	}
	return status.Errorf(code, "%s failed because the file of faults says so", c.Name)
}

// wait waits, unless the call ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
