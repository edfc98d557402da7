package telemetry

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-metrics"
	metricsprometheus "github.com/hashicorp/go-metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Options configure a [Telemetry]. The zero value works.
type Options struct {
	// Logger receives every broken guarantee. Nil discards it.
	Logger hclog.Logger
	// Policy is the drainer's policy, for the witness. It must be the same on all servers.
	Policy rules.Policy
	// QueueSize is how many applied entries may wait for the witness. Each holds a state in
	// memory, so a longer queue needs more memory, and a shorter one misses more entries in a
	// burst. Zero is [DefaultQueueSize].
	QueueSize int
	// CertificateExpires is when the server's certificate expires; or nil.
	CertificateExpires func() time.Time
}

// DefaultQueueSize is the default of [Options].QueueSize.
const DefaultQueueSize = 1024

// Telemetry counts what one server does. Its methods are safe for concurrent use, and
// none of them blocks.
type Telemetry struct {
	logger   hclog.Logger
	registry *prometheus.Registry
	sink     *metricsprometheus.PrometheusSink
	series   series

	mu sync.Mutex
	// routes are the routes that have a label of their own; guarded by mu.
	routes map[string]bool

	// expires returns when the server's certificate expires, or is nil.
	expires func() time.Time
	// sources are read at a scrape; nil before Watch.
	sources atomic.Pointer[Sources]
	auditor *auditor
	// scrapes holds one value for each running scrape.
	scrapes chan struct{}
}

// maxScrapes bounds the concurrent scrapes: each reads all allocations on draining nodes.
const maxScrapes = 4

// New returns a Telemetry that counts from now on. Close it to release it.
func New(o Options) (*Telemetry, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.QueueSize == 0 {
		o.QueueSize = DefaultQueueSize
	}
	if o.QueueSize < 1 {
		return nil, fmt.Errorf("telemetry: Options.QueueSize is %d and must be > 0", o.QueueSize)
	}
	t := &Telemetry{
		logger:   o.Logger.Named("telemetry"),
		registry: prometheus.NewRegistry(),
		routes:   map[string]bool{},
		expires:  o.CertificateExpires,
		scrapes:  make(chan struct{}, maxScrapes),
	}
	var err error
	t.sink, err = metricsprometheus.NewPrometheusSinkFrom(metricsprometheus.PrometheusOpts{
		Registerer: t.registry, Name: namespace + "_events",
	})
	if err != nil {
		return nil, fmt.Errorf("telemetry: registering the sink: %w", err)
	}
	if t.series, err = newSeries(t.registry); err != nil {
		return nil, fmt.Errorf("telemetry: registering the series: %w", err)
	}
	t.auditor = newAuditor(t, o)
	for _, c := range []prometheus.Collector{
		&puller{t: t}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := t.registry.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: registering a collector: %w", err)
		}
	}
	go t.auditor.run()
	return t, nil
}

// Close judges the queued entries and ends the goroutine. The numbers can still be read. Entries
// that are applied later are missed.
func (t *Telemetry) Close() { t.auditor.close() }

// Sink is for other code of this process that counts through go-metrics, such as raft.
func (t *Telemetry) Sink() metrics.MetricSink { return t.sink }

// OnApply takes an applied entry, in the order of the log. It is an OnApply of [shims.FSMConfig]
// and returns at once.
func (t *Telemetry) OnApply(a shims.Applied) { t.auditor.offer(a) }
