package fingerprint

import (
	"fmt"
	"net"
	"net/netip"
)

// Network is the address on which tasks listen.
type Network struct {
	// Device is the name of the interface, or empty if it is not known.
	Device string
	IP     string
}

// network sets the address of the interface with the name. Without a name it is the address from which the
// machine reaches others, and on a machine without a route that of the loopback interface.
func (m *Machine) network(name string) error {
	if name != "" {
		one, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("reading the address of the network interface %q: %w", name, err)
		}
		addresses := addressesOf(*one)
		if len(addresses) == 0 {
			return fmt.Errorf("the network interface %q has no address", name)
		}
		m.Network = Network{Device: name, IP: addresses[0].String()}
	} else {
		m.Network = findNetwork()
	}
	m.set("unique.network.ip-address", m.Network.IP)
	return nil
}

// findNetwork returns the address of the default route. To connect a socket of UDP sends nothing: the kernel only
// chooses the address.
func findNetwork() Network {
	found := Network{IP: "127.0.0.1"}
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // addresses for documents
		c, err := net.Dial("udp", far)
		if err != nil {
			continue
		}
		if local, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			found.IP = local.Addr().WithZone("").String()
		}
		_ = c.Close()
		break
	}
	all, err := net.Interfaces()
	if err != nil {
		return found
	}
	for _, one := range all {
		for _, address := range addressesOf(one) {
			if address.String() == found.IP {
				found.Device = one.Name
				return found
			}
		}
	}
	return found
}

// addressesOf returns the addresses of an interface: those that others can reach before those of the link alone,
// and IPv4 before IPv6.
func addressesOf(one net.Interface) (all []netip.Addr) {
	list, err := one.Addrs()
	if err != nil {
		return nil
	}
	var classes [4][]netip.Addr
	for _, address := range list {
		prefix, err := netip.ParsePrefix(address.String())
		if err != nil {
			continue
		}
		ip, class := prefix.Addr().Unmap(), 0
		if ip.Is6() {
			class++
		}
		if ip.IsLinkLocalUnicast() {
			class += 2
		}
		classes[class] = append(classes[class], ip.WithZone(""))
	}
	for _, class := range classes {
		all = append(all, class...)
	}
	return all
}
