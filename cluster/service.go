package cluster

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Bounds on services.
const (
	// MaxServices bounds the services of a group and its tasks together.
	MaxServices = 100
	// MaxServiceChecks bounds their checks together.
	MaxServiceChecks = 100
	// MaxServiceTags bounds the tags of one service.
	MaxServiceTags = 100
	// MaxServiceNameBytes bounds the name of a service.
	MaxServiceNameBytes = 63
	// MaxHostNameBytes bounds the address of a service or of a check, as DNS bounds the name of a host.
	MaxHostNameBytes = 253
)

// Service is an entry of the catalogue. An instance of it is listed for each allocation that runs, is not
// stopped, and is healthy if the service has checks.
type Service struct {
	// Name may contain variables such as ${NOMAD_GROUP_NAME}.
	Name string
	// PortLabel is the label of a port of the group or of the service's task, a number, or empty for a service
	// without a port. A label wins over a number.
	PortLabel string `codec:",omitempty"`
	// Address replaces the address of the port. It may contain variables.
	Address string `codec:",omitempty"`
	// Tags may contain variables.
	Tags []string `codec:",omitempty"`
	// TaskName is the task of a group's service, or empty. Script checks run in it, and check_restart restarts
	// it. For a service of a task it is empty.
	TaskName string         `codec:",omitempty"`
	Checks   []ServiceCheck `codec:",omitempty"`
}

// Decides reports whether a check of the service decides about the health of an allocation of the group.
func (s *Service) Decides(g *TaskGroup) bool {
	return g.ChecksDecide() && slices.ContainsFunc(s.Checks, func(c ServiceCheck) bool { return c.OnUpdate != CheckIgnored })
}

// ServiceDefinitions yields the services of the group, with the names of their tasks: first those of the group itself,
// whose task is empty.
func (g *TaskGroup) ServiceDefinitions() iter.Seq2[string, *Service] {
	return partsOf(g, g.Services, func(t *Task) []Service { return t.Services })
}

// HasServices reports whether the group or a task of it has services.
func (g *TaskGroup) HasServices() bool {
	for range g.ServiceDefinitions() {
		return true
	}
	return false
}

// HasServices reports whether a group of the job has services.
func (j *Job) HasServices() bool {
	return slices.ContainsFunc(j.TaskGroups, func(g *TaskGroup) bool { return g != nil && g.HasServices() })
}

// WithoutServices returns a copy of the job without services.
func (j *Job) WithoutServices() *Job {
	c := j.Copy()
	for _, g := range c.TaskGroups {
		if g == nil {
			continue
		}
		g.Services = nil
		for _, t := range g.Tasks {
			if t != nil {
				t.Services = nil
			}
		}
	}
	return c
}

// GivesServices reports whether an allocation of an older version of the job gets other services from this one, and its
// tasks run on unchanged.
func (j *Job) GivesServices(a *Allocation) bool {
	was, is := a.Job.Group(a.TaskGroup), j.Group(a.TaskGroup)
	return !a.Terminal() && RunsLike(a.Job, j, a.TaskGroup) && (was.HasServices() || is.HasServices()) && !was.servesLike(is)
}

func (g *TaskGroup) servesLike(o *TaskGroup) bool {
	return g.ChecksDecide() == o.ChecksDecide() && slices.EqualFunc(g.Services, o.Services, Service.Equal) &&
		slices.EqualFunc(g.Tasks, o.Tasks, func(a, b *Task) bool { return slices.EqualFunc(a.Services, b.Services, Service.Equal) })
}

// Equal reports whether both services are the same. An empty map or list equals a nil one.
func (s Service) Equal(o Service) bool {
	return s.Name == o.Name && s.PortLabel == o.PortLabel && s.Address == o.Address && slices.Equal(s.Tags, o.Tags) &&
		s.TaskName == o.TaskName && slices.EqualFunc(s.Checks, o.Checks, ServiceCheck.Equal)
}

func copyServices(services []Service) []Service {
	copied := slices.Clone(services)
	for i, s := range copied {
		copied[i].Tags, copied[i].Checks = slices.Clone(s.Tags), slices.Clone(s.Checks)
		for k, c := range copied[i].Checks {
			copied[i].Checks[k] = c.copy()
		}
	}
	return copied
}

func canonicalServices(services []Service) []Service {
	for i, s := range services {
		services[i].Tags, services[i].Checks = orNil(s.Tags), orNil(s.Checks)
		for k, c := range s.Checks {
			services[i].Checks[k].Args, services[i].Checks[k].Headers = orNil(c.Args), orNilMap(c.Headers)
		}
	}
	return orNil(services)
}

// serviceBytes is the size of the texts of the group's services.
func serviceBytes(g *TaskGroup) (size int) {
	for _, s := range g.ServiceDefinitions() {
		size += len(s.Name) + len(s.PortLabel) + len(s.Address) + len(s.TaskName) + textsBytes(s.Tags)
		for _, c := range s.Checks {
			size += len(c.Name) + len(c.PortLabel) + len(c.Address) + len(c.Method) + len(c.Path) + len(c.Body) +
				len(c.ServerName) + len(c.Command) + textsBytes(c.Args) + len(c.TaskName)
			//lint:order a sum of integers
			for name, values := range c.Headers {
				size += len(name) + textsBytes(values)
			}
		}
	}
	return size
}

func textsBytes(texts []string) (size int) {
	for _, text := range texts {
		size += len(text)
	}
	return size
}

// validateServices checks the services of the group and its tasks together.
func (g *TaskGroup) validateServices(t JobType) error {
	var errs []error
	services, checks, ids := 0, 0, make(map[[3]string]bool)
	for task, s := range g.ServiceDefinitions() {
		if services++; len(errs) >= maxReasons {
			errs = append(errs, errTooManyReasons)
			break
		}
		place := fmt.Sprintf("Service %q", CutText(s.Name))
		if task != "" {
			place = fmt.Sprintf("Task %q: service %q", CutText(task), CutText(s.Name))
		}
		wrong := []error{checkServiceName(s.Name), checkPortLabel(g, task, s.PortLabel), checkTaskName(g, s.TaskName)}
		if task != "" && s.TaskName != "" && s.TaskName != task {
			wrong = append(wrong, fmt.Errorf("the service of a task cannot belong to task %q", CutText(s.TaskName)))
		}
		if endsEarly(g, task) { // its instance would be listed as long as the allocation runs
			wrong = append(wrong, errors.New("the task does not run as long as its allocation, so it can have no service"))
		}
		id := [3]string{task, s.Name, s.PortLabel}
		if ids[id] {
			wrong = append(wrong, errors.New("it is defined twice with the same port"))
		}
		ids[id] = true
		wrong = append(wrong, checkAddress("address", s.Address))
		if len(s.Tags) > MaxServiceTags {
			wrong = append(wrong, fmt.Errorf("it has at most %d tags but found %d", MaxServiceTags, len(s.Tags)))
		}
		if i := slices.IndexFunc(s.Tags, func(tag string) bool { return strings.ContainsFunc(tag, isControl) }); i >= 0 {
			wrong = append(wrong, fmt.Errorf("the tag %q contains a control character", CutText(s.Tags[i])))
		}
		if len(s.Checks) > 0 && t.ToCompletion() {
			wrong = append(wrong, fmt.Errorf("checks are for service and system jobs, and the job has type %q", t))
		}
		names := make(map[string]bool, len(s.Checks))
		for i := range s.Checks {
			c := &s.Checks[i]
			if names[c.Name] {
				wrong = append(wrong, fmt.Errorf("check %q is defined twice", CutText(c.Name)))
			}
			names[c.Name] = true
			if err := c.validate(g, task, s); err != nil {
				wrong = append(wrong, withPlace(fmt.Sprintf("check %q", CutText(c.Name)), err))
			}
		}
		checks += len(s.Checks)
		if err := errors.Join(wrong...); err != nil {
			errs = append(errs, withPlace(place, err))
		}
	}
	if services > MaxServices || checks > MaxServiceChecks {
		errs = append(errs, fmt.Errorf("A group has at most %d services with %d checks but found %d and %d", MaxServices, MaxServiceChecks, services, checks))
	}
	return errors.Join(errs...)
}

// checkServiceName checks a name without variables as the name of a host. A name with variables is checked when
// an instance is listed.
func checkServiceName(name string) error {
	if strings.Contains(name, "${") {
		return CheckID(name)
	}
	if !ValidServiceName(name) {
		return fmt.Errorf("the name must have 1 to %d letters, digits and hyphens, with none at either end", MaxServiceNameBytes)
	}
	return nil
}

// ValidServiceName reports whether a service can have the name: letters, digits and inner hyphens.
func ValidServiceName(name string) bool {
	outside := func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	return name != "" && len(name) <= MaxServiceNameBytes && name == strings.Trim(name, "-") && !strings.ContainsFunc(name, outside)
}

// checkAddress checks an address without variables. One with variables is checked when they have values.
func checkAddress(what, address string) error {
	switch {
	case address == "":
		return nil
	case CheckID(address) != nil:
		return fmt.Errorf("invalid %s: %w", what, CheckID(address))
	case !strings.Contains(address, "${") && !ValidAddress(address):
		return fmt.Errorf("invalid %s: %q is neither an IP address nor the name of a host; a port belongs to port", what, CutText(address))
	}
	return nil
}

// ValidAddress reports whether an instance of a service can have the address: an IP address, or the name of a host. An
// FSM calls it, so it reads no IP address as the library of one version of Go does. Two colons are of an IPv6 address.
func ValidAddress(address string) bool {
	others := "-._"
	if strings.Count(address, ":") > 1 {
		others = ".:%"
	}
	outside := func(r rune) bool {
		return !strings.ContainsRune(others, r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	return len(address) <= MaxHostNameBytes && strings.Trim(address, others) != "" && !strings.ContainsFunc(address, outside)
}

// checkPortLabel checks the label of a port that the group, or the task, has, or a number.
// See [AssignedPorts.ServicePort].
func checkPortLabel(g *TaskGroup, task, label string) error {
	if label == "" {
		return nil
	}
	for of, r := range g.PortRequests() {
		if r.Label == label && servesPortOf(task, of) {
			return nil
		}
	}
	if number, err := strconv.Atoi(label); err == nil {
		if number < 1 || number > MaxPort {
			return fmt.Errorf("a port must be between [1, %d] but found %d", MaxPort, number)
		}
		return nil
	}
	return fmt.Errorf("the group has no port with the label %q", CutText(label))
}

func checkTaskName(g *TaskGroup, name string) error {
	if name == "" || slices.ContainsFunc(g.Tasks, func(t *Task) bool { return t != nil && t.Name == name }) {
		return nil
	}
	return fmt.Errorf("the group has no task %q", CutText(name))
}

// endsEarly reports whether the group has the task, and it ends before its allocation or begins after the others.
func endsEarly(g *TaskGroup, name string) bool {
	return slices.ContainsFunc(g.Tasks, func(t *Task) bool { return t != nil && t.Name == name && !t.Main() && !t.Sidecar() })
}
