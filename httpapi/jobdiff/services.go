package jobdiff

import (
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// appendServices adds the services that differ. Two services of an owner may have one name, with different ports.
func appendServices(to []*wire.ObjectDiff, before, after []cluster.Service) []*wire.ObjectDiff {
	for was, is := range pairs(before, after) {
		d := &wire.ObjectDiff{Type: diffType(was != nil, is != nil, true), Name: "Service", Fields: diffFields(was, is, serviceFields), Objects: []*wire.ObjectDiff{}}
		for was, is := range pairs(orNone(was).Checks, orNone(is).Checks) {
			c := &wire.ObjectDiff{Type: diffType(was != nil, is != nil, true), Name: "Check", Fields: diffFields(was, is, checkFields), Objects: []*wire.ObjectDiff{}}
			c.Fields = append(c.Fields, diffMaps("Header", headerTexts(was), headerTexts(is))...)
			c.Objects = appendObject(c.Objects, "CheckRestart", orNone(was).Restart, orNone(is).Restart, checkRestartFields)
			d.Objects = appendDiff(d.Objects, c)
		}
		to = appendDiff(to, d)
	}
	return to
}

func serviceFields(s *cluster.Service) []field {
	return []field{
		{"Address", s.Address}, {"Name", s.Name}, {"PortLabel", s.PortLabel}, {"Tags", strings.Join(s.Tags, ", ")}, {"TaskName", s.TaskName},
	}
}

func checkFields(c *cluster.ServiceCheck) []field {
	return []field{
		{"Address", c.Address}, {"Args", strings.Join(c.Args, " ")}, {"Body", c.Body}, {"Command", c.Command},
		{"FailuresBeforeCritical", number(c.FailuresBeforeCritical)}, {"Interval", c.Interval.String()}, {"Method", c.Method}, {"Name", c.Name},
		{"OnUpdate", string(c.OnUpdate)}, {"Path", c.Path}, {"PortLabel", c.PortLabel}, {"SuccessBeforePassing", number(c.SuccessBeforePassing)},
		{"TLS", flagText(c.TLS)}, {"TLSServerName", c.ServerName}, {"TLSSkipVerify", flagText(c.SkipVerify)}, {"TaskName", c.TaskName},
		{"Timeout", c.Timeout.String()}, {"Type", string(c.Type)},
	}
}

func headerTexts(c *cluster.ServiceCheck) map[string]string {
	texts := make(map[string]string)
	for name, values := range orNone(c).Headers {
		texts[name] = strings.Join(values, ", ")
	}
	return texts
}

func checkRestartFields(r *cluster.CheckRestart) []field {
	return []field{{"Grace", r.Grace.String()}, {"IgnoreWarnings", strconv.FormatBool(r.IgnoreWarnings)}, {"Limit", strconv.Itoa(r.Limit)}}
}
