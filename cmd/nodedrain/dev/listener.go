package dev

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// listening describes the process that listens at a port, as part of a sentence. It is empty if this
// user cannot find it out.
func listening(address string) string {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return ""
	}
	sockets := make(map[string]bool)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err == nil { // without IPv6 there is no second table
			addListeners(sockets, string(table), uint16(port))
		}
	}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil || len(sockets) == 0 {
		return ""
	}
	for _, file := range files {
		target, err := os.Readlink(file)
		if err != nil || !sockets[target] { // the process may have ended
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			continue
		}
		if d, err := process.Describe(pid); err == nil {
			return fmt.Sprintf(": %s listens there", d)
		}
	}
	return ""
}

// addListeners adds the sockets that listen at a port, from the text of proc(5)'s net/tcp.
func addListeners(to map[string]bool, table string, port uint16) {
	const localAddress, state, inode = 1, 3, 9
	const listens = "0A"
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > inode && fields[state] == listens && strings.HasSuffix(fields[localAddress], fmt.Sprintf(":%04X", port)) {
			to["socket:["+fields[inode]+"]"] = true
		}
	}
}
