package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

// Bounds of the time that a CPU profile or a trace takes, in seconds.
const (
	defaultProfileSeconds = 1
	maxProfileSeconds     = 60
)

// readProfile answers GET /v1/agent/pprof/{profile}: a profile of the server that received the
// request. It needs the right to write: a profile slows the server down, and shows more of it than any
// other read.
func readProfile(q *request) error {
	values := q.URL.Query()
	seconds, err := number(values, "seconds", maxProfileSeconds)
	if err != nil {
		return err
	}
	debug, err := number(values, "debug", 2)
	if err != nil {
		return err
	}
	gc, err := number(values, "gc", 1)
	if err != nil {
		return err
	}
	own := q.backend.Peers.Name()
	switch server := values.Get("server_id"); {
	case !q.options.Profiles:
		return fail(http.StatusNotFound, "this server does not record profiles: start it with -pprof")
	case values.Get("node_id") != "":
		return fail(http.StatusNotImplemented, "profiles of clients are not implemented")
	case server != "" && server != own && (server != "leader" || !q.backend.Peers.Leads()):
		return fail(http.StatusNotImplemented, fmt.Sprintf("this is server %s: send the request to the server that server_id names", own))
	}
	orDefault(&seconds, defaultProfileSeconds)
	switch name := q.PathValue("profile"); name {
	case "cmdline":
		return attach(q.w, "text/plain; charset=utf-8", func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(os.Args, "\x00"))
			return err
		})
	case "profile":
		return record(q, seconds, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		return record(q, seconds, trace.Start, trace.Stop)
	default:
		profile := pprof.Lookup(name)
		if profile == nil {
			return fail(http.StatusNotFound, fmt.Sprintf("unknown profile %q", name))
		}
		if gc > 0 && name == "heap" {
			runtime.GC()
		}
		kind := "application/octet-stream"
		if debug > 0 {
			kind = "text/plain; charset=utf-8"
		}
		return attach(q.w, kind, func(w io.Writer) error { return profile.WriteTo(w, debug) })
	}
}

// number is a parameter of a profile, or zero.
func number(values url.Values, name string, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fail(http.StatusBadRequest, fmt.Sprintf("%s is %q and must be a number from 0 to %d", name, text, most))
	}
	return n, nil
}

// record records for some seconds, less if the request ends before. The process has one recorder of
// each kind.
func record(q *request, seconds int, start func(io.Writer) error, stop func()) error {
	return attach(q.w, "application/octet-stream", func(w io.Writer) error {
		if err := start(w); err != nil {
			return fail(http.StatusConflict, err.Error())
		}
		defer stop()
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
			return nil
		case <-q.Context().Done():
			return context.Cause(q.Context())
		}
	})
}

// attach answers with what the function writes, or with its error.
func attach(w http.ResponseWriter, kind string, write func(io.Writer) error) error {
	var body bytes.Buffer
	if err := write(&body); err != nil {
		if said := (*failure)(nil); errors.As(err, &said) {
			return err
		}
		return fmt.Errorf("taking the profile: %w", err)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	_, _ = body.WriteTo(w) // the client may have disconnected
	return nil
}
