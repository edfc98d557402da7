// Command driver is an example of a task driver. Its tasks are shell scripts. It contains
// everything that every driver needs, and nothing more. docs/plugins.md explains it.
//
// task.go implements one task: a process in a control group. driver.go implements the calls: each
// call finds the task and calls its method. To write another driver, change task.go first, then the
// schemas and the capabilities in driver.go.
package main

import "github.com/seed-f9cf0b39/nodedrain/plugin/sdk"

func main() { sdk.Serve(newDriver()) }
