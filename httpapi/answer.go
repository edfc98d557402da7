package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
)

// readHeaders sets the headers of a read: its index, and how current the state is. A forwarded
// answer has the leader's.
func (q *request) readHeaders(index uint64) {
	peers, header := q.backend.Peers, q.w.Header()
	q.indexHeader(index)
	header.Set("X-Nomad-LastContact", strconv.FormatInt(max(0, peers.LastContact().Milliseconds()), 10))
	header.Set("X-Nomad-KnownLeader", strconv.FormatBool(peers.Leader() != ""))
}

func (q *request) indexHeader(index uint64) {
	q.w.Header().Set("X-Nomad-Index", strconv.FormatUint(index, 10))
}

// written answers a write with its index.
func (q *request) written(index uint64, body any) error {
	q.indexHeader(index)
	return q.answer(body)
}

// page returns a page of a list, as its items have it. It sets the token of the next page.
func page[Row, Item any](q *request, l listing.List[Row], item func(Row) Item) ([]Item, error) {
	rows, next, err := listing.Page(q.Context(), q.params.page, l)
	q.next = next
	items := make([]Item, len(rows))
	for i, row := range rows {
		items[i] = item(row)
	}
	return items, err
}

// answer answers 200 with JSON.
func (q *request) answer(body any) error { return answerAs(q, http.StatusOK, body) }

// answerAs answers with JSON: on one line without a newline, or, for ?pretty, for people.
func answerAs(q *request, code int, body any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	values := q.URL.Query()
	pretty := values.Has("pretty") && values.Get("pretty") != "0"
	if pretty {
		encoder.SetIndent("", "    ")
	}
	if err := encoder.Encode(body); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	if !pretty {
		b.Truncate(b.Len() - 1)
	}
	q.w.Header().Set("Content-Type", "application/json")
	if err := compress(q, &b); err != nil {
		return err
	}
	q.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	q.w.WriteHeader(code)
	_, _ = b.WriteTo(q.w) // the client may have disconnected
	return nil
}

// minCompressed is the size from which an answer is compressed, in bytes. A smaller one fits into a
// packet.
const minCompressed = 1 << 10

// compress compresses an answer if the request allows it, and sets its headers.
func compress(q *request, b *bytes.Buffer) error {
	q.w.Header().Add("Vary", "Accept-Encoding")
	if b.Len() < minCompressed || !allowsGzip(strings.Join(q.Header.Values("Accept-Encoding"), ",")) {
		return nil
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestSpeed)
	if err == nil {
		_, err = b.WriteTo(z)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("compressing the answer: %w", err)
	}
	*b = small
	q.w.Header().Set("Content-Encoding", "gzip")
	return nil
}

// allowsGzip reports whether an Accept-Encoding header allows gzip.
func allowsGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(one, ";")
		if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		weight, weighted := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q=")
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}
