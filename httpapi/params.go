package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/limits"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// params are the query parameters that all reads share.
type params struct {
	// index is the index that the answer's must be above; zero does not wait.
	index uint64
	// wait is how long at most, or zero for the longest.
	wait time.Duration
	// stale permits the answer of a server that does not lead.
	stale bool

	namespace cluster.Namespace // never empty; everyNamespace is all
	prefix    string
	page      listing.Query
}

// everyNamespace stands for all namespaces.
const everyNamespace cluster.Namespace = "*"

// within reports whether the request includes the namespace.
func (p params) within(n cluster.Namespace) bool {
	return p.namespace == everyNamespace || p.namespace == n
}

// readParams reads the query string, and ignores unknown parameters.
func (q *request) readParams() error {
	values := q.URL.Query()
	if region := values.Get("region"); region != "" && region != q.options.Region {
		return failure.New(http.StatusInternalServerError, "No path to region")
	}
	q.params.namespace = cluster.Namespace(values.Get("namespace"))
	orDefault(&q.params.namespace, cluster.DefaultNamespace)
	if !q.route.reads {
		return nil
	}
	return q.params.read(values)
}

func (p *params) read(values url.Values) (err error) {
	if text := values.Get("index"); text != "" {
		if p.index, err = strconv.ParseUint(text, 10, 64); err != nil {
			return failure.Bad("Invalid index")
		}
	}
	if text := values.Get("wait"); text != "" {
		if p.wait, err = time.ParseDuration(text); err != nil {
			return failure.Bad("Invalid wait time")
		}
	}
	if p.stale, err = flag(values, "stale"); err != nil {
		return err
	}
	if p.page.Reverse, err = flag(values, "reverse"); err != nil {
		return err
	}
	if text := values.Get("per_page"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return failure.Bad("Expect a number for `per_page` query string parameter")
		}
		p.page.PerPage = int(n)
	}
	p.prefix, p.page.Filter, p.page.NextToken = values.Get("prefix"), values.Get("filter"), values.Get("next_token")
	return nil
}

// flag is a boolean parameter; without a value it is true.
func flag(values url.Values, name string) (bool, error) {
	text := values.Get(name)
	if text == "" {
		return values.Has(name), nil
	}
	set, err := strconv.ParseBool(text)
	if err != nil {
		return false, failure.Bad("Expect `true` or `false` for `%s` query string parameter", name)
	}
	return set, nil
}

// keepsDelays refuses a stop that skips the shutdown delays.
func keepsDelays(values url.Values) error {
	skip, err := flag(values, "no_shutdown_delay")
	if err == nil && skip {
		err = failure.Bad("no_shutdown_delay is not supported: the tasks get the shutdown delays of their job")
	}
	return err
}

// diffBase returns the version with which a request compares all versions, or nil for the one before each.
func diffBase(values url.Values) (version *uint64, err error) {
	if values.Get("diff_tag") != "" {
		return nil, failure.New(http.StatusNotImplemented, "versions of jobs have no tags: use diff_version")
	}
	text := values.Get("diff_version")
	if text == "" {
		return nil, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, failure.Bad("diff_version is not a version: %s", failure.Quoted(text))
	}
	return &number, nil
}

// maxIdempotencyToken bounds the key that a drain stores, in bytes.
const maxIdempotencyToken = 256

// idempotencyToken is the key of a request that may be repeated, or empty for a request without one. A key that is
// sent empty is mostly a variable of a script that is not set, and the request would take effect each time.
func idempotencyToken(q *request) (string, error) {
	values := q.URL.Query()
	token := values.Get("idempotency_token")
	if values.Has("idempotency_token") && strings.TrimSpace(token) == "" {
		return "", failure.Bad("idempotency_token is empty: without a key the request would not be applied only once")
	}
	if len(token) > maxIdempotencyToken {
		return "", failure.Bad("idempotency_token is longer than %d bytes", maxIdempotencyToken)
	}
	return token, nil
}

// checkDrain refuses a request that has two possible meanings.
func checkDrain(text []byte, body *wire.DrainRequest) error {
	if body.DrainSpec == nil {
		if err := checkCancel(text); err != nil {
			return err
		}
	} else if body.Undo {
		return failure.Bad("Undo needs a request that cancels the drain, without a DrainSpec")
	} else if err := checkDrainSpec(body.DrainSpec); err != nil {
		return err
	}
	return checkMeta(body.Meta)
}

// checkDrainSpec refuses numbers outside their ranges.
func checkDrainSpec(s *wire.DrainSpec) error {
	if s.Deadline > limits.Longest {
		return failure.Bad("Deadline is %s and must be at most %s; 0 is no limit", s.Deadline, limits.Longest)
	}
	if err := s.Spec().Validate(); err != nil {
		return failure.Bad("%v", err)
	}
	return nil
}

// checkCancel refuses a request without DrainSpec that has an unknown key: it may be a misspelled
// DrainSpec, and to cancel the drain would be the opposite.
func checkCancel(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(new(wire.DrainRequest)); err != nil {
		return failure.Bad("%v: a request without DrainSpec cancels the drain, and must not have unknown keys", err)
	}
	return nil
}

func checkMeta(meta map[string]string) error {
	size := 0
	for key, value := range meta {
		size += len(key) + len(value)
	}
	if size > maxDrainMeta {
		return failure.Bad("Meta is larger than %d bytes", maxDrainMeta)
	}
	return nil
}
