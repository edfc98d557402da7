// Command driver is a task driver to copy. Its tasks are shell scripts. It shows all that a driver
// needs, and nothing that only some drivers need. docs/plugins.md explains it.
//
// task.go has one task: a process in a control group. driver.go has the calls, which find the task
// and let it act. To write another driver, change task.go first, then the schemas and the
// capabilities in driver.go.
package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/sdk"

func main() { sdk.Serve(newDriver()) }
