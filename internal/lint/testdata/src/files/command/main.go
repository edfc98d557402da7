// Command command is a fixture: its comment is in main.go.
package main

func main() {}
