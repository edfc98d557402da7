// Package rest is of the root module, which may import all.
package rest

import _ "example.org/repository/core"
