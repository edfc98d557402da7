package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Defaults of [Options].
const (
	DefaultRegion               = "global"
	DefaultDatacenter           = "dc1"
	DefaultMaxBody              = 4 << 20
	DefaultMaxBlocking          = 8192
	DefaultMaxBlockingPerClient = 256
	DefaultMaxWait              = 300 * time.Second
)

// Options say how a [Handler] answers. The zero value is usable.
type Options struct {
	// Region is the one region of this cluster: a request for another is refused. Empty
	// is [DefaultRegion].
	Region string
	// Datacenter is what the server says of itself; empty is [DefaultDatacenter].
	Datacenter string

	// MaxBody bounds the bytes of a request's body; what is larger is answered 413.
	// Zero is [DefaultMaxBody].
	MaxBody int64
	// MaxBlocking bounds the readers that wait here at a time, those that wait for the
	// leader's answer included. One more is answered 429. Each costs a connection and a
	// goroutine. Zero is [DefaultMaxBlocking].
	MaxBlocking int
	// MaxBlockingPerClient bounds those of one client: of one token that somebody has, or
	// else of one address. Zero is [DefaultMaxBlockingPerClient].
	MaxBlockingPerClient int
	// MaxWait bounds how long a reader waits, and is how long one waits that does not
	// say; up to a sixteenth is added, so that those who came together do not leave
	// together. Zero is [DefaultMaxWait].
	MaxWait time.Duration

	// Observe is called after each request with the route that answered it ("other" for
	// none), the status code, and how long it took, waiting included; or nil. It is
	// called by many goroutines, and its caller waits for it.
	Observe func(route string, code int, took time.Duration)
	// Metrics answers GET /v1/metrics for who may read; or nil: then it is 404.
	Metrics http.Handler
	// Logger is told of requests that failed for a reason of the server's; nil logs
	// nothing. It is never told a token or a secret.
	Logger hclog.Logger
}

func (o Options) withDefaults() Options {
	orDefault(&o.Region, DefaultRegion)
	orDefault(&o.Datacenter, DefaultDatacenter)
	orDefault(&o.MaxBody, DefaultMaxBody)
	orDefault(&o.MaxBlocking, DefaultMaxBlocking)
	orDefault(&o.MaxBlockingPerClient, DefaultMaxBlockingPerClient)
	orDefault(&o.MaxWait, DefaultMaxWait)
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
	} {
		if field.value < 0 {
			return fmt.Errorf("httpapi: Options.%s is %d, and must not be negative", field.name, field.value)
		}
	}
	return nil
}
