package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault describes a fault of calls.
type fault struct {
	// Call selects the calls with the fault. An empty value selects all.
	Call string `json:"call"`
	// Delay is how long a call waits.
	Delay duration `json:"delay"`
	// Fail is the number of calls that fail, counted from the change of the file. -1 means all
	// calls.
	Fail int `json:"fail"`
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

// faults are the faults in a file. The file is read at each call, so that a test can change it.
type faults struct {
	// path is empty if there are no faults.
	path string

	mu     sync.Mutex
	text   []byte      // guarded by mu
	failed map[int]int // by index, the calls that have failed since the file has changed; guarded by mu
}

// act makes a call wait and fail as the first matching entry of the file states.
func (f *faults) act(ctx context.Context, c call) error {
	delay, failure := f.find(c)
	select {
	case <-time.After(delay):
		return failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// find returns the delay and the error of a call.
func (f *faults) find(c call) (time.Duration, error) {
	if f.path == "" {
		return 0, nil
	}
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		text, err = []byte("[]"), nil
	}
	var all []fault
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&all)
	}
	if err != nil {
		return 0, fmt.Errorf("read the faults: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !bytes.Equal(text, f.text) {
		f.text, f.failed = text, map[int]int{}
	}
	i := slices.IndexFunc(all, func(one fault) bool {
		return one.Call == "" || one.Call == c.Name
	})
	if i < 0 {
		return 0, nil
	}
	one := all[i]
	if one.Fail == 0 || one.Fail > 0 && f.failed[i] >= one.Fail {
		return time.Duration(one.Delay), nil
	}
	f.failed[i]++
	return time.Duration(one.Delay), status.Errorf(codes.Internal, "%s failed because of the file of faults", c.Name)
}
