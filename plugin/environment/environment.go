// Package environment decides which environment variables the process of a plugin has. These are
// the variables of the client that programs need to run and to reach the network, and the variables
// that the operator sets for the plugin. A plugin gets no other variable of the client, so it gets
// no token and no secret that the client has in its environment.
package environment

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// inherited are the names of the variables that a plugin gets from the client. Programs read the
// proxies in both cases. Names that begin with LC_ are also inherited.
func inherited() []string {
	return []string{
		"PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR",
		"LANG", "LANGUAGE", "TZ", "TZDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// Of returns the environment of a plugin as NAME=value, sorted by name. The argument client is the
// environment of the client, as os.Environ returns it. The argument own has the variables that the
// operator sets for the plugin. They replace variables of the client with the same name.
func Of(client []string, own map[string]string) []string {
	all := make(map[string]string)
	allowed := inherited()
	for _, variable := range client {
		name, value, is := strings.Cut(variable, "=")
		if is && (slices.Contains(allowed, name) || strings.HasPrefix(name, "LC_")) {
			all[name] = value
		}
	}
	maps.Copy(all, own)
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// The bounds of the variables that an operator sets for one plugin.
const (
	// MaxVariables is the largest number of variables.
	MaxVariables = 100
	// MaxName is the largest size of a name, in bytes.
	MaxName = 128
	// MaxValue is the largest size of a value, in bytes.
	MaxValue = 32 << 10
	// MaxTotal is the largest size of all names and values together, in bytes.
	MaxTotal = 64 << 10
)

var names = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Check returns all mistakes in the variables that an operator sets for a plugin, or nil.
func Check(own map[string]string) error {
	var errs []error
	if len(own) > MaxVariables {
		errs = append(errs, fmt.Errorf("%d variables are set, and the largest number is %d", len(own), MaxVariables))
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(own)) {
		errs = append(errs, CheckVariable(name, own[name]))
		total += len(name) + len(own[name])
	}
	if total > MaxTotal {
		errs = append(errs, fmt.Errorf("the variables have %d bytes, and the largest size is %d", total, MaxTotal))
	}
	return errors.Join(errs...)
}

// CheckVariable returns the mistake in one variable, or nil.
func CheckVariable(name, value string) error {
	switch {
	case len(name) > MaxName:
		return fmt.Errorf("the name %.20q… of a variable has %d bytes, and the largest size is %d", name, len(name), MaxName)
	case !names.MatchString(name):
		return fmt.Errorf("%q is not the name of a variable: a name has letters, digits and _, and does not begin with a digit", name)
	case slices.Contains(Reserved(), name):
		return fmt.Errorf("the client sets the variable %s for the protocol of plugins", name)
	case len(value) > MaxValue:
		return fmt.Errorf("the variable %s has %d bytes, and the largest size is %d", name, len(value), MaxValue)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the variable %s has a NUL byte", name)
	}
	return nil
}

// Reserved returns the names of the variables that the protocol of plugins sets.
func Reserved() []string {
	return []string{
		"NOMAD_PLUGIN_MAGIC_COOKIE", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS",
		"PLUGIN_CLIENT_CERT", "PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_UNIX_SOCKET_GROUP", "PLUGIN_MULTIPLEX_GRPC",
	}
}
