package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const snapshotPath = "/v1/operator/snapshot"

// SaveSnapshot writes a file with the whole state, the secrets of nodes included. With stale, any
// server answers from its own state, also without a leader. It compares the checksum that the server
// sends. After an error the written bytes are no snapshot.
func SaveSnapshot(ctx context.Context, c *Client, stale bool, to io.Writer) error {
	if err := findServer(ctx, c); err != nil {
		return err
	}
	defer c.connection.requesting(nil)()
	response, err := c.connection.send(ctx, http.MethodGet, snapshotPath, Query{Stale: stale}.values(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return readError(response)
	}
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, hash), response.Body); err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	if sum := "sha-256=" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); response.Header.Get("Digest") != sum {
		return errors.New("reading the snapshot: the checksum that the server has sent does not match")
	}
	return nil
}

// RestoreSnapshot replaces the state of all servers by that of a file. It returns the new index. The
// file is read once, so RestoreSnapshot first searches a server that answers.
func RestoreSnapshot(ctx context.Context, c *Client, from io.Reader) (index uint64, err error) {
	if err := findServer(ctx, c); err != nil {
		return 0, err
	}
	defer c.connection.requesting(nil)()
	once := &request{connection: c.connection, at: c.connection.begin(), method: http.MethodPut, path: snapshotPath, stream: from}
	response, err := once.do(ctx)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, readError(response)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return readAnswer(response.Header).Index, nil
}

// findServer changes to a server that answers. A request for a snapshot detects only after a long time
// that a server is silent.
func findServer(ctx context.Context, c *Client) error {
	response, err := c.connection.send(ctx, http.MethodGet, "/v1/status/leader", nil, nil)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return response.Body.Close()
}
