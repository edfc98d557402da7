package node

import (
	"context"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// machineToken is the token for the first registration of a node. It belongs to one goroutine.
type machineToken struct {
	file string // or empty
	last string // the last token of the file, or empty
}

// register registers the node with the token. It reads the file again: an operator may have replaced
// the token since the start of the client. If the file cannot be read, the last token is used.
func (t *machineToken) register(ctx context.Context, server httpServer, n *cluster.Node) (answer wire.HeartbeatResponse, err error) {
	var unread error
	if t.file != "" {
		token, err := config.ReadToken(t.file)
		if unread = err; err == nil {
			t.last = token
		}
	}
	registrar, err := server.client(t.last)
	if err != nil {
		return answer, err
	}
	defer registrar.Close()
	answer, err = registrar.Register(ctx, n)
	switch {
	case err == nil:
		return answer, nil
	case unread != nil:
		return answer, fmt.Errorf("%w; the token file cannot be read: %w", err, unread)
	case t.last == "":
		return answer, fmt.Errorf("%w; the client has no token_file with a token that may register nodes", err)
	}
	return answer, err
}
