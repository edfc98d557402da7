package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// jobNumber is the range of a number of a registration.
type jobNumber struct {
	// body is the body of a registration with the number as #.
	body string
	// place is how a refusal names the number.
	place       string
	least, most int64
}

const year = int64(365 * 24 * time.Hour)

// jobNumbers are the numbers of a registration by the type and the name of the field.
func jobNumbers() map[string]jobNumber {
	job := func(field string, least, most int64) jobNumber {
		return jobNumber{jobBody(nestedField(field)+",", "", ""), "job: " + field, least, most}
	}
	group := func(field string, least, most int64) jobNumber {
		return jobNumber{jobBody("", nestedField(field)+",", ""), `group "web": ` + field, least, most}
	}
	task := func(field string, least, most int64) jobNumber {
		return jobNumber{jobBody("", "", nestedField(field)+","), `group "web", task "main": ` + field, least, most}
	}
	check := func(rest, field string, least, most int64) jobNumber {
		body := jobBody("", `"Services":[{"Name":"web","Provider":"nomad","PortLabel":"80","Checks":[{"Type":"tcp",`+rest+`}]}],`, "")
		return jobNumber{body, `group "web": Services[0].Checks[0].` + field, least, most}
	}
	return map[string]jobNumber{
		"Job.Priority":                        job("Priority", 0, 100),
		"TaskGroup.Count":                     group("Count", 0, 1_000_000),
		"TaskGroup.ShutdownDelay":             group("ShutdownDelay", 0, year),
		"TaskGroup.MaxRunDuration":            group("MaxRunDuration", 0, year),
		"TaskGroup.MaxClientDisconnect":       group("MaxClientDisconnect", 0, year),
		"TaskGroup.StopAfterClientDisconnect": group("StopAfterClientDisconnect", 0, year),
		"Disconnect.LostAfter":                group("Disconnect.LostAfter", 0, year),
		"Disconnect.StopOnClientAfter":        group("Disconnect.StopOnClientAfter", 0, year),
		"EphemeralDisk.SizeMB":                group("EphemeralDisk.SizeMB", 0, 1<<30),
		"MigrateStrategy.MaxParallel":         group("Migrate.MaxParallel", 0, 1_000_000),
		"MigrateStrategy.MaxSurge":            group("Migrate.MaxSurge", 0, 1_000_000),
		"MigrateStrategy.MinHealthyTime":      group("Migrate.MinHealthyTime", 0, year),
		"MigrateStrategy.HealthyDeadline":     job("Migrate.HealthyDeadline", 0, year),
		"UpdateStrategy.MaxParallel":          group("Update.MaxParallel", 0, 1_000_000),
		"UpdateStrategy.MinHealthyTime":       group("Update.MinHealthyTime", 0, year),
		"UpdateStrategy.HealthyDeadline":      job("Update.HealthyDeadline", 0, year),
		"ReschedulePolicy.Attempts":           group("ReschedulePolicy.Attempts", 0, 1000),
		"ReschedulePolicy.Interval":           job("Reschedule.Interval", 0, year),
		"RestartPolicy.Attempts":              group("RestartPolicy.Attempts", 0, 100_000),
		"RestartPolicy.Interval":              task("RestartPolicy.Interval", int64(5*time.Second), year),
		"RestartPolicy.Delay":                 task("RestartPolicy.Delay", 0, year),
		"Task.KillTimeout":                    task("KillTimeout", 0, year),
		"Task.ShutdownDelay":                  task("ShutdownDelay", 0, year),
		"LogConfig.MaxFiles":                  task("LogConfig.MaxFiles", 1, 10_000),
		"LogConfig.MaxFileSizeMB":             task("LogConfig.MaxFileSizeMB", 1, 1<<20),
		"CSIPlugin.HealthTimeout":             task("CSIPluginConfig.HealthTimeout", 0, year),
		"Resources.CPU":                       task("Resources.CPU", 0, 1<<24),
		"Resources.MemoryMB":                  task("Resources.MemoryMB", 0, 1<<24),
		"Resources.DiskMB":                    task("Resources.DiskMB", 0, 1<<30),
		"Resources.GPU":                       task("Resources.GPU", 0, 1_024_000),
		"Resources.Cores":                     task("Resources.Cores", 0, 4096),
		"Resources.MemoryMaxMB":               task("Resources.MemoryMaxMB", -1, 1<<24),
		"Resources.SecretsMB":                 task("Resources.SecretsMB", 0, 1<<24),
		"Resources.IOPS":                      task("Resources.IOPS", 0, 1<<20),
		"Port.Value": {jobBody("", "", `"Resources":{"Networks":[{},{"ReservedPorts":[{"Label":"a","Value":#}]}]},`),
			`group "web", task "main": Resources.Networks[1].ReservedPorts[0].Value`, 1, 65535},
		"Port.To": {jobBody("", "", `"Resources":{"Networks":[{"DynamicPorts":[{"Label":"a","To":1},{"Label":"b","To":#}]}]},`),
			`group "web", task "main": Resources.Networks[0].DynamicPorts[1].To`, -1, 65535},
		"ServiceCheck.Interval":               check(`"Timeout":"1s","Interval":#`, "Interval", int64(time.Second), year),
		"ServiceCheck.Timeout":                check(`"Interval":"1s","Timeout":#`, "Timeout", int64(time.Second), year),
		"ServiceCheck.SuccessBeforePassing":   check(`"Interval":"1s","Timeout":"1s","SuccessBeforePassing":#`, "SuccessBeforePassing", 0, 100_000),
		"ServiceCheck.FailuresBeforeCritical": check(`"Interval":"1s","Timeout":"1s","FailuresBeforeCritical":#`, "FailuresBeforeCritical", 0, 100_000),
		"CheckRestart.Limit":                  check(`"Interval":"1s","Timeout":"1s","CheckRestart":{"Limit":#}`, "CheckRestart.Limit", 0, 100_000),
		"CheckRestart.Grace":                  check(`"Interval":"1s","Timeout":"1s","CheckRestart":{"Limit":1,"Grace":#}`, "CheckRestart.Grace", 0, year),
		"DeviceRequest.Count": {jobBody("", "", `"Resources":{"Devices":[{"Name":"a"},{"Name":"b","Count":#}]},`),
			`group "web", task "main": Resources.Devices[1].Count`, 1, 1024},
		"Affinity.Weight": {jobBody("", "", `"Resources":{"Devices":[{"Name":"a","Affinities":[{},{"Weight":#}]}]},`),
			`group "web", task "main": Resources.Devices[0].Affinities[1].Weight`, -100, 100},
	}
}

// nestedField is "a":{"b":#} for a.b.
func nestedField(path string) string {
	names := strings.Split(path, ".")
	return `"` + strings.Join(names, `":{"`) + `":#` + strings.Repeat("}", len(names)-1)
}

// anyNumber are the fields, and the types of fields, that may have any number, with the reason.
func anyNumber() map[string]string {
	const byServers = "the servers set it at a registration, and a plan only compares it"
	return map[string]string{
		"JobRegisterRequest.JobModifyIndex": "it is only compared with that of the registered job",
		"JobRegisterRequest.EvalPriority":   "TestReferenceClient_EvalPriority has its range",
		"Job.SubmitTime":                    byServers,
		"Job.Version":                       byServers,
		"Job.CreateIndex":                   byServers,
		"Job.ModifyIndex":                   byServers,
		"Job.JobModifyIndex":                byServers,
		"UpdateStrategy.Canary":             "the servers do not read it",
		"UpdateStrategy.ProgressDeadline":   "the servers do not read it",
		"UpdateStrategy.Stagger":            "the servers do not read it",
		"ReschedulePolicy.Delay":            "its least depends on other fields: TestReschedulePolicy_validate",
		"ReschedulePolicy.MaxDelay":         "its least depends on other fields: TestReschedulePolicy_validate",
	}
}

// numbersOf collects the integer fields of a type, and of the types of its fields.
func numbersOf(of reflect.Type, into map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		numbersOf(of.Elem(), into)
		return
	case reflect.Struct:
	default:
		return
	}
	if _, excepted := anyNumber()[of.Name()]; excepted {
		into[of.Name()] = true
		return
	}
	for field := range of.Fields() {
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		switch {
		case kind >= reflect.Int && kind <= reflect.Float64:
			into[of.Name()+"."+field.Name] = true
		default:
			numbersOf(field.Type, into)
		}
	}
}

// Each number of a registration has a range, or a reason why any number is valid. A registration and a plan
// refuse a number outside its range, and name it. Before, 2^63-1 was valid for most of them.
//
//race:skip one request after the other
func TestJob_numbers(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{}
	numbersOf(reflect.TypeFor[wire.JobRegisterRequest](), fields)
	numbersOf(reflect.TypeFor[wire.JobPlanRequest](), fields)
	ranges, excepted := jobNumbers(), anyNumber()
	listed := slices.Concat(slices.Collect(maps.Keys(ranges)), slices.Collect(maps.Keys(excepted)))
	slices.Sort(listed)
	must.Eq(t, slices.Sorted(maps.Keys(fields)), listed)

	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	for field, number := range ranges {
		text := func(n int64) string {
			if number.most == year {
				return time.Duration(n).String()
			}
			return strconv.FormatInt(n, 10)
		}
		refusal := func(path string, n int64) string {
			rec := httptest.NewRecorder()
			body := strings.Replace(number.body, "#", strconv.FormatInt(n, 10), 1)
			h.ServeHTTP(rec, httptest.NewRequest("PUT", path, strings.NewReader(body)))
			if rec.Code == http.StatusOK {
				return ""
			}
			must.Eq(t, http.StatusBadRequest, rec.Code, must.Sprint(field, n))
			return rec.Body.String()
		}
		for _, path := range []string{"/v1/jobs", "/v1/job/new/plan"} {
			for _, n := range []int64{number.most + 1, 1<<63 - 1} {
				must.Eq(t, fmt.Sprintf("%s is %s; the most is %s", number.place, text(n), text(number.most)), refusal(path, n))
			}
			for _, n := range []int64{number.least, number.most} {
				must.StrNotContains(t, refusal(path, n), "; the ", must.Sprint(field, n))
			}
			if field == "DeviceRequest.Count" {
				must.StrContains(t, refusal(path, -1), "is the number -1; it must be a whole number of at most 64 bits, not negative")
				must.Eq(t, number.place+" is 0; the least is 1", refusal(path, 0))
				continue
			}
			for _, n := range []int64{number.least - 1, -1 << 63} {
				must.Eq(t, fmt.Sprintf("%s is %s; the least is %s", number.place, text(n), text(number.least)), refusal(path, n))
			}
		}
	}
}

// The ranges also apply to the blocks of other places, and a refusal names ten numbers.
func TestJob_numbersOfAllPlaces(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	const blocks = `"Migrate":{"MaxParallel":-1},"RestartPolicy":{"Attempts":-1},"ShutdownDelay":-1,`
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/jobs", strings.NewReader(jobBody(blocks, blocks, blocks))))
	must.Eq(t, http.StatusBadRequest, rec.Code)
	must.Eq(t, `job: Migrate.MaxParallel is -1; the least is 0
group "web": ShutdownDelay is -1ns; the least is 0s
group "web": Migrate.MaxParallel is -1; the least is 0
group "web": RestartPolicy.Attempts is -1; the least is 0
group "web", task "main": ShutdownDelay is -1ns; the least is 0s
group "web", task "main": RestartPolicy.Attempts is -1; the least is 0`, rec.Body.String())

	rec = httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/jobs", strings.NewReader(`{"Job":{"ID":"new","TaskGroups":`+repeated(20, `{"Count":-1}`)+`}}`)))
	must.StrContains(t, rec.Body.String(), "group 9: Count is -1; the least is 0\nand more is wrong")
	must.StrNotContains(t, rec.Body.String(), "group 10")
}
