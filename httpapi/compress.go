package httpapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strconv"
	"strings"
)

// minCompressed is the size from which an answer is compressed, in bytes. A smaller one fits into a
// packet.
const minCompressed = 1 << 10

// compress compresses an answer if the request allows it, and sets the headers that say so.
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
		weight, given := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q=")
		if !given {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}
