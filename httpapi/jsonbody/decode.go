// Package jsonbody decodes the JSON bodies of requests, and describes what is wrong with them. Begin with [Decode].
package jsonbody

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonscan"
)

// MaxDepth bounds the nesting of a body.
const MaxDepth = 80

// Decode reads the body's one JSON value. It refuses null: a request without content must not end a
// drain. It refuses a body that is nested too deep.
func Decode(body []byte, into any) error {
	if err := CheckDepth(body); err != nil {
		return err
	}
	return DecodeDeep(body, into)
}

// DecodeDeep is [Decode] for a caller that checks the depth later, to name the place in its own words.
func DecodeDeep(body []byte, into any) error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return failure.Bad("Request body is empty")
	}
	if err := json.Unmarshal(body, into); err != nil {
		// encoding/json refuses very deep bodies without a place
		return cmp.Or(CheckDepth(body), describe(body, err))
	}
	return keysOnce(body)
}

// CheckDepth returns a failure that names the place if the body is nested too deep.
func CheckDepth(body []byte) error {
	path, deeper := jsonscan.Deeper(body, MaxDepth)
	if !deeper {
		return nil
	}
	return failure.Bad("%s: the request body is nested %d levels deep, at most %d", path, jsonscan.Depth(body), MaxDepth)
}

// keysOnce returns an error if the body's object has a key twice. It compares keys as the decoder
// does, without case; the decoder takes the last. It does not check nested objects: they may be
// maps, whose keys depend on case.
func keysOnce(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return err
	}
	var keys []string
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)
		if slices.ContainsFunc(keys, func(other string) bool { return strings.EqualFold(key, other) }) {
			return failure.Bad("%q is in the request body twice", key)
		}
		if len(keys) == maxKeys {
			return failure.Bad("the request body has too many keys")
		}
		keys = append(keys, key)
		if err := decoder.Decode(new(json.RawMessage)); err != nil {
			return err
		}
	}
	return nil
}

// maxKeys is more than any body has.
const maxKeys = 100
