package lint_test

const module = "github.com/seed-f9cf0b39/nodedrain"
