package wire

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Service is an entry of the catalogue that each allocation has.
type Service struct {
	// Name is by default that of the job, the group and the task, with hyphens.
	Name string
	// Provider is nomad.
	Provider  string
	PortLabel string
	// AddressMode is auto: the address is that of the node.
	AddressMode string
	Address     string `json:",omitempty"`
	// Cluster is default: there is no Consul.
	Cluster  string
	Tags     []string `json:",omitempty"`
	TaskName string   `json:",omitempty"`
	// OnUpdate and CheckRestart of a registration are the defaults of the checks. An answer has both in the
	// checks.
	OnUpdate     string
	CheckRestart *CheckRestart   `json:",omitempty"`
	Checks       []*ServiceCheck `json:",omitempty"`
}

// ServiceCheck is a check of a service. Durations are in nanoseconds.
type ServiceCheck struct {
	// Name is by default `service: "NAME" check`.
	Name                   string
	Type                   string
	Interval               time.Duration
	Timeout                time.Duration
	OnUpdate               string
	PortLabel              string `json:",omitempty"`
	Address                string `json:",omitempty"`
	SuccessBeforePassing   int
	FailuresBeforeCritical int
	CheckRestart           *CheckRestart `json:",omitempty"`

	// Protocol is http or https, and empty for http.
	Protocol      string              `json:",omitempty"`
	Method        string              `json:",omitempty"`
	Path          string              `json:",omitempty"`
	Header        map[string][]string `json:",omitempty"`
	Body          string              `json:",omitempty"`
	TLSServerName string              `json:",omitempty"`
	TLSSkipVerify bool                `json:",omitempty"`

	Command  string   `json:",omitempty"`
	Args     []string `json:",omitempty"`
	TaskName string   `json:",omitempty"`
}

// CheckRestart restarts a task whose check fails Limit times in a row. A limit of zero restarts nothing.
type CheckRestart struct {
	Limit int
	// Grace is how long after the start of the task failures do not count, one second if nil.
	Grace          *time.Duration
	IgnoreWarnings bool
}

// Values of services that the compatible API has.
const (
	providerNomad   = "nomad"
	requireHealthy  = "require_healthy"
	defaultGrace    = time.Second
	autoAddress     = "auto"
	protocolHTTPS   = "https"
	defaultCluster  = "default"
	consulIsMissing = "the servers and the clients do not use Consul, which is the default provider: write provider = \"nomad\""
)

// servicesOf converts the services of a group or a task. Base is the name of one without a name.
func servicesOf(services []*Service, base string) (list []cluster.Service, err error) {
	for i, w := range services {
		if w == nil {
			return nil, fmt.Errorf("Service %d is missing", i)
		}
		s := cluster.Service{
			Name: cmp.Or(w.Name, base), PortLabel: w.PortLabel, Address: w.Address, Tags: w.Tags, TaskName: w.TaskName,
		}
		if w.Provider != providerNomad {
			return nil, fmt.Errorf("Service %q: %s", cluster.CutText(s.Name), consulIsMissing)
		}
		if err := w.checkOnUpdate(); err != nil {
			return nil, fmt.Errorf("Service %q: %w", cluster.CutText(s.Name), err)
		}
		for k, c := range w.Checks {
			if c == nil {
				return nil, fmt.Errorf("Service %q: check %d is missing", cluster.CutText(s.Name), k)
			}
			s.Checks = append(s.Checks, c.check(w, checkName(s, c.Name)))
		}
		list = append(list, s)
	}
	return list, nil
}

// checkOnUpdate checks the default of the checks, which may be none.
func (w *Service) checkOnUpdate() error {
	switch cluster.CheckOnUpdate(w.OnUpdate) {
	case cluster.CheckMustPass, requireHealthy, cluster.CheckMayWarn, cluster.CheckIgnored:
		return nil
	}
	return fmt.Errorf("invalid on_update: %q", cluster.CutText(w.OnUpdate))
}

// checkName returns the name of a check, or the default one with a number if the service has that already.
func checkName(s cluster.Service, name string) string {
	if name != "" {
		return name
	}
	name = fmt.Sprintf("service: %q check", s.Name)
	if slices.ContainsFunc(s.Checks, func(c cluster.ServiceCheck) bool { return c.Name == name }) {
		name += fmt.Sprintf(" %d", len(s.Checks)+1)
	}
	return name
}

// check returns the check with the defaults of its service.
func (w *ServiceCheck) check(s *Service, name string) cluster.ServiceCheck {
	c := cluster.ServiceCheck{
		Name: name, Type: cluster.CheckType(w.Type), Interval: w.Interval, Timeout: w.Timeout,
		OnUpdate: cluster.CheckOnUpdate(cmp.Or(w.OnUpdate, s.OnUpdate)), PortLabel: w.PortLabel, Address: w.Address,
		SuccessBeforePassing: w.SuccessBeforePassing, FailuresBeforeCritical: w.FailuresBeforeCritical,
		Restart: w.CheckRestart.over(s.CheckRestart).restart(),
		TLS:     w.Protocol == protocolHTTPS, Method: w.Method, Path: w.Path, Headers: w.Header, Body: w.Body,
		ServerName: w.TLSServerName, SkipVerify: w.TLSSkipVerify, Command: w.Command, Args: w.Args, TaskName: w.TaskName,
	}
	if c.OnUpdate == requireHealthy {
		c.OnUpdate = cluster.CheckMustPass
	}
	return c
}

// over returns the block with what it leaves out from another one, as the reference's client merges both.
func (w *CheckRestart) over(base *CheckRestart) *CheckRestart {
	if w == nil || base == nil {
		return cmp.Or(w, base)
	}
	merged := *base
	if w.Limit > 0 {
		merged.Limit = w.Limit
	}
	if w.Grace != nil {
		merged.Grace = w.Grace
	}
	merged.IgnoreWarnings = base.IgnoreWarnings || w.IgnoreWarnings
	return &merged
}

// restart returns nil for a block that restarts nothing.
func (w *CheckRestart) restart() *cluster.CheckRestart {
	if w == nil || w.Limit == 0 {
		return nil
	}
	r := &cluster.CheckRestart{Limit: w.Limit, Grace: defaultGrace, IgnoreWarnings: w.IgnoreWarnings}
	override(&r.Grace, w.Grace)
	return r
}

func newServices(services []cluster.Service) (list []*Service) {
	for _, s := range services {
		w := &Service{
			Name: s.Name, Provider: providerNomad, PortLabel: s.PortLabel, AddressMode: autoAddress, Address: s.Address, Cluster: defaultCluster,
			Tags: s.Tags, TaskName: s.TaskName, OnUpdate: requireHealthy,
		}
		for _, c := range s.Checks {
			w.Checks = append(w.Checks, newServiceCheck(c))
		}
		list = append(list, w)
	}
	return list
}

func newServiceCheck(c cluster.ServiceCheck) *ServiceCheck {
	w := &ServiceCheck{
		Name: c.Name, Type: string(c.Type), Interval: c.Interval, Timeout: c.Timeout, OnUpdate: cmp.Or(string(c.OnUpdate), requireHealthy),
		PortLabel: c.PortLabel, Address: c.Address, SuccessBeforePassing: c.SuccessBeforePassing, FailuresBeforeCritical: c.FailuresBeforeCritical,
		Method: c.Method, Path: c.Path, Header: c.Headers, Body: c.Body, TLSServerName: c.ServerName, TLSSkipVerify: c.SkipVerify,
		Command: c.Command, Args: c.Args, TaskName: c.TaskName,
	}
	if c.TLS {
		w.Protocol = protocolHTTPS
	}
	if c.Restart != nil {
		w.CheckRestart = &CheckRestart{Limit: c.Restart.Limit, Grace: new(c.Restart.Grace), IgnoreWarnings: c.Restart.IgnoreWarnings}
	}
	return w
}

// ServiceRegistration is a listed instance of a service.
type ServiceRegistration struct {
	ID          string
	ServiceName string
	Namespace   string
	NodeID      string
	Datacenter  string
	JobID       string
	AllocID     string
	Tags        []string
	Address     string
	// Port is zero for a service without a port.
	Port        int
	CreateIndex uint64
	ModifyIndex uint64
}

// ServiceList are the names of the listed services of a namespace.
type ServiceList struct {
	Namespace string
	Services  []ServiceName
}

// ServiceName is a service with the tags of all its instances.
type ServiceName struct {
	ServiceName string
	Tags        []string
}
