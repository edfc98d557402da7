package client

import (
	"context"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Services lists the names of services in the client's namespace, by namespace.
func Services(ctx context.Context, c *Client, q Query) ([]*wire.ServiceList, Answer, error) {
	return get[[]*wire.ServiceList](ctx, c, "/v1/services", q.values())
}

// Service lists the instances of a service, by id.
func Service(ctx context.Context, c *Client, name string, q Query) ([]*wire.ServiceRegistration, Answer, error) {
	return get[[]*wire.ServiceRegistration](ctx, c, "/v1/service/"+pathElement(name), q.values())
}
