package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
)

// Defaults of [Options].
const (
	DefaultRegion               = "global"
	DefaultDatacenter           = "dc1"
	DefaultBuild                = "0.0.0-unknown"
	DefaultMaxBody              = 4 << 20
	DefaultMaxBlocking          = 8192
	DefaultMaxBlockingPerClient = 256
	DefaultMaxWait              = 300 * time.Second
	DefaultMaxDataCopies        = 8
	DefaultDataRate             = 32 << 20
)

// Options configure a [Handler]. The zero value is usable.
type Options struct {
	// Region is the one region of this cluster: a request for another is refused. Empty
	// is [DefaultRegion].
	Region string
	// Datacenter is the server's datacenter in answers; empty is [DefaultDatacenter].
	Datacenter string
	// Build is the version of this build. Empty is [DefaultBuild].
	Build string

	// Hosts are names by which clients reach the server. Without access control and without TLS, a
	// request whose Host header is none of them is refused, unless it is an address, localhost, a
	// name without a dot or the name of this machine.
	Hosts []string

	// MaxBody bounds the bytes of a request's body; a larger one is answered 413. Zero is
	// [DefaultMaxBody].
	MaxBody int64
	// MaxBlocking bounds the readers that wait here at a time, including those that wait for the
	// leader's answer. One more is answered 429. Each costs a connection and a goroutine. Zero is
	// [DefaultMaxBlocking].
	MaxBlocking int
	// MaxBlockingPerClient bounds the waiting readers of one client: of one known token, or else of
	// one address. Zero is [DefaultMaxBlockingPerClient].
	MaxBlockingPerClient int
	// MaxWait bounds how long a reader waits, and is the wait of a reader without one. Up to a
	// sixteenth is added, so that readers that came together leave at different times. Zero is
	// [DefaultMaxWait].
	MaxWait time.Duration

	// MaxDataCopies bounds the copies of the data of ephemeral disks that run at a time through this server.
	// More wait for their turn. Zero is [DefaultMaxDataCopies].
	MaxDataCopies int
	// DataRate bounds the bytes per second of all copies together, and is at least [datamove.MinRate]. Zero is
	// [DefaultDataRate].
	DataRate int64

	// Observe is called after each request with the route that answered it ("other" for
	// none), the status code, and how long it took, waiting included; or nil. It is
	// called by many goroutines, and its caller waits for it.
	Observe func(route string, code int, took time.Duration)
	// Metrics answers GET /v1/metrics for callers with the right to read; or nil: then the answer
	// is 404.
	Metrics http.Handler
	// Profiles lets callers with the right to write take profiles of the process at
	// GET /v1/agent/pprof/{profile}. False answers 404.
	Profiles bool
	// Logger logs requests that failed because of the server; nil logs nothing. No log line holds a
	// token or a secret.
	Logger hclog.Logger
}

func (o Options) withDefaults() Options {
	orDefault(&o.Region, DefaultRegion)
	orDefault(&o.Datacenter, DefaultDatacenter)
	orDefault(&o.Build, DefaultBuild)
	orDefault(&o.MaxBody, DefaultMaxBody)
	orDefault(&o.MaxBlocking, DefaultMaxBlocking)
	orDefault(&o.MaxBlockingPerClient, DefaultMaxBlockingPerClient)
	orDefault(&o.MaxWait, DefaultMaxWait)
	orDefault(&o.MaxDataCopies, DefaultMaxDataCopies)
	orDefault(&o.DataRate, DefaultDataRate)
	if o.Observe == nil {
		o.Observe = func(string, int, time.Duration) {}
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	return o
}

func orDefault[T comparable](value *T, byDefault T) {
	var zero T
	if *value == zero {
		*value = byDefault
	}
}

func (o Options) validate() error {
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"MaxBody", o.MaxBody}, {"MaxBlocking", int64(o.MaxBlocking)},
		{"MaxBlockingPerClient", int64(o.MaxBlockingPerClient)}, {"MaxWait", int64(o.MaxWait)},
		{"MaxDataCopies", int64(o.MaxDataCopies)}, {"DataRate", o.DataRate},
	} {
		if field.value < 0 {
			return fmt.Errorf("httpapi: Options.%s is %d, and must not be negative", field.name, field.value)
		}
	}
	if o.DataRate > 0 && o.DataRate < datamove.MinRate {
		return fmt.Errorf("httpapi: Options.DataRate is %d, and must be at least %d", o.DataRate, datamove.MinRate)
	}
	return nil
}
