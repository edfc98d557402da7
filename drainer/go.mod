module github.com/seed-f9cf0b39/nodedrain/drainer

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/seed-f9cf0b39/nodedrain/cluster v0.0.0
	github.com/shoenig/test v1.13.2
	golang.org/x/time v0.16.0
	pgregory.net/rapid v1.3.0
)

require github.com/google/go-cmp v0.7.0 // indirect

// The modules change together. Embedders do not see this line. See "Modules" in ARCHITECTURE.md.
replace github.com/seed-f9cf0b39/nodedrain/cluster => ../cluster
