module github.com/seed-f9cf0b39/nodedrain/cluster

go 1.26.0

require (
	github.com/shoenig/test v1.13.2
	pgregory.net/rapid v1.3.0
)

require github.com/google/go-cmp v0.7.0 // indirect
