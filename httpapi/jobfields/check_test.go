package jobfields_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobfields"
)

func ofGroup(rest string) string {
	return `{"Job":{"ID":"web","TaskGroups":[{"Name":"web",` + rest + `}]}}`
}
func ofTask(rest string) string { return ofGroup(`"Tasks":[{"Name":"main",` + rest + `}]`) }

// Warnings and refusals name the place in the file, in the words of HCL.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body     string
		warnings []string
		err      string
	}{
		"nothing": {body: `{"Job":null}`},
		"a job that the reference's client has filled in": {body: ofGroup(
			`"Update":{"Stagger":30000000000,"MaxParallel":1,"HealthCheck":"checks","MinHealthyTime":10000000000,"HealthyDeadline":300000000000,"ProgressDeadline":600000000000,"Canary":0,"AutoRevert":false},` +
				`"ReschedulePolicy":{"Attempts":0,"Interval":0,"Delay":30000000000,"DelayFunction":"exponential","MaxDelay":3600000000000,"Unlimited":true},"Services":null,"Affinities":[]`)},
		"an update with canaries": {
			body:     ofGroup(`"Update":{"Canary":1}`),
			warnings: []string{`group "web": update.canary is not supported and has no effect: the rollout runs without canaries`},
		},
		// L2 of the review: work that must run at most once ran eleven times, without a word.
		"no rescheduling": {body: ofGroup(`"ReschedulePolicy":{"Attempts":0,"Unlimited":false}`)},
		// H4 of the review: misspelled keys vanished, and "job plan" printed that all was well.
		"misspelled keys": {
			body: `{"Jobb":{},"job":{"ID":"web","TaskGroups":[{"Name":"web","Cuont":3,"Udpate":{},"Migrate":{"MaxParalel":1},"Tasks":[{"Name":"main","kill_timeout":1}]}]}}`,
			warnings: []string{
				`unknown key "Jobb" has no effect; the nearest known key is "Job"`,
				`group "web": unknown key "Cuont" has no effect; the nearest known key is "Count"`,
				`group "web": migrate: unknown key "MaxParalel" has no effect; the nearest known key is "MaxParallel"`,
				`group "web", task "main": unknown key "kill_timeout" has no effect; the nearest known key is "KillTimeout"`,
				`group "web": unknown key "Udpate" has no effect; the nearest known key is "Update"`,
			},
		},
		"keys in maps and configs": {body: ofTask(`"Meta":{"x":"y"},"Env":{"z":"1"},"Config":{"comand":"a"}`)},
		"keys of meta": {
			body: `{"Job":{"Meta":{"nodedrain.max_surge":"1","Nodedrain.max_surge":"1","other":"1"},"Migrate":null,"TaskGroups":[{"Name":"web","meta":{"nodedrain.max_surg":"1"},"Tasks":[{"Name":"main","Meta":{"nodedrain.max_surge":"1"}}]},` +
				`{"Name":"api","Meta":{"nodedrain.max_surge":"2","nodedrain.zzzzzzzzzzzzzzzzzzzzz":"2"},"Migrate":{"MaxSurge":1}},{"Meta":{"nodedrain.max_surge":"1"},"Migrate":{"MaxSurge":1}}]}}`,
			warnings: []string{
				`job: meta: unknown key "Nodedrain.max_surge" has no effect; the nearest known key is "nodedrain.max_surge"`,
				`group "web": meta: unknown key "nodedrain.max_surg" has no effect; the nearest known key is "nodedrain.max_surge"`,
				`group "web", task "main": meta: key "nodedrain.max_surge" has no effect: it belongs to the meta of the group or the job`,
				`group "api": meta: key "nodedrain.max_surge" has no effect: max_surge of the migrate block is 1`,
				`group "api": meta: unknown key "nodedrain.zzzzzzzzzzzzzzzzzzzzz" has no effect`,
			},
		},
		"keys of meta in a batch job": {
			body: `{"Job":{"Type":"batch","Meta":{"nodedrain.max_surge":"1"},"TaskGroups":[{"Name":"web","Meta":{"nodedrain.max_surge":"1"}}]}}`,
			warnings: []string{
				`job: meta: key "nodedrain.max_surge" has no effect in a job of the type "batch": it is for the type service`,
				`group "web": meta: key "nodedrain.max_surge" has no effect in a job of the type "batch": it is for the type service`,
			},
		},
		"meta that is no object": {body: `{"Job":{"Meta":1,"TaskGroups":[null,1,{"Meta":[],"Tasks":[null,{"Meta":"x"}]}]}}`, err: "group: element 0 is null: give it a value, or leave it out\n" + `group "2", task: element 0 is null: give it a value, or leave it out`},
		"parts with names": {
			body: ofTask(`"Templates":[{"DestPath":"local/a"},{"DestPath":"local/b"}],"Services":[{"Name":"api","Meta":{"a":"b"}}],"Vault":{}`),
			warnings: []string{
				`group "web", task "main": service "api".meta is not supported and has no effect: the catalogue has no such part`,
				`group "web", task "main": template "local/a" is not supported and has no effect: the clients render no templates`,
				`group "web", task "main": template "local/b" is not supported and has no effect: the clients render no templates`,
				`group "web", task "main": vault is not supported and has no effect: the servers and the clients do not use Vault`,
			},
		},
		"parts without names": {
			body: `{"Job":{"Affinities":[{},{}],"TaskGroups":[{"Tasks":[{"Leader":false,"Kind":"x"}]}]}}`,
			warnings: []string{
				"job: affinity is not supported and has no effect: the scheduler has no preferences for nodes beside those for devices",
				`group "0", task "0": kind is not supported and has no effect: the servers and the clients do not use Consul`,
			},
		},
		"another name": {
			body:     `{"Job":{"ID":"web","Name":"front"}}`,
			warnings: []string{"job: name is not supported and has no effect: the name of a job is its id"},
		},
		"the cluster's region":   {body: `{"Job":{"ID":"web","Name":"web","Region":"eu"}}`},
		"the default region":     {body: `{"Job":{"Region":"global"}}`},
		"another region":         {body: `{"Job":{"Region":"us"}}`, err: `job: region "us" is not supported: the servers run the jobs of their own region`},
		"the host's network":     {body: ofGroup(`"Networks":[{"Mode":"host"},{}]`)},
		"an old limit of speeds": {body: ofTask(`"Resources":{"Networks":[{"MBits":0}]}`)},
		"networks and ports": {
			body: ofGroup(`"Networks":[{"Mode":"bridge","DynamicPorts":[{"Label":"http","HostNetwork":"private"}]}],"Tasks":[{"Name":"main","Resources":{"Networks":[{"Mode":"none"}]}}]`),
			err: `group "web": network.port "http".host_network "private" is not supported: a node has one network; leave host_network out` + "\n" +
				`group "web": network.mode "bridge" is not supported: tasks use the network of their host; leave the mode out, or write host` + "\n" +
				`group "web", task "main": resources.network.mode "none" is not supported: tasks use the network of their host; leave the mode out, or write host`,
		},
		"ports of the host": {
			body: ofGroup(`"Networks":[{"DynamicPorts":[{"Label":"http","To":-1,"HostNetwork":"default"}],"ReservedPorts":[{"Label":"ssh","Value":22}]}],"Tasks":[{"Name":"main","Resources":{"Networks":[{"ReservedPorts":[{"Label":"ssh","Value":23,"IgnoreCollision":true}]}]}}]`),
			warnings: []string{
				`group "web", task "main": resources.network.reserved_ports "ssh".ignore_collision is not supported and has no effect: a static port has one owner on each node`,
			},
		},
		"a service of Consul": {
			body: ofGroup(`"Services":[{"Name":"api","Provider":"consul"},{"Name":"web","Provider":""},{"Name":"front","Provider":"nomad"}]`),
			err: `group "web": service "api".provider "consul" is not supported: the servers and the clients do not use Consul; write nomad` + "\n" +
				`group "web": service "web".provider "" is not supported: the servers and the clients do not use Consul; write nomad`,
		},
		"a service that the reference's client has filled in": {
			body: ofGroup(`"Services":[{"Name":"web","Tags":null,"CanaryTags":null,"EnableTagOverride":false,"PortLabel":"http","AddressMode":"auto","Address":"","Checks":[` +
				`{"Name":"","Type":"http","Command":"","Args":null,"Path":"/","Protocol":"","PortLabel":"","Expose":false,"AddressMode":"","Advertise":"","Interval":5000000000,"Timeout":1000000000,"InitialStatus":"","Notes":"","TLSServerName":"","TLSSkipVerify":false,"Header":null,"Method":"","CheckRestart":null,"GRPCService":"","GRPCUseTLS":false,"TaskName":"","SuccessBeforePassing":0,"FailuresBeforeCritical":0,"FailuresBeforeWarning":0,"Body":"","OnUpdate":"require_healthy"}` +
				`],"CheckRestart":null,"Connect":null,"Meta":null,"CanaryMeta":null,"TaggedAddresses":null,"TaskName":"","OnUpdate":"require_healthy","Identity":null,"Weights":null,"Provider":"nomad","Cluster":"default","Kind":""}]`),
		},
		// These were kept without a word, and had no effect.
		"fields of another type of check": {
			body: ofGroup(`"Services":[{"Name":"api","Provider":"nomad","Checks":[` +
				`{"Name":"open","Type":"tcp","Path":"/up","Method":"PUT","Header":{"A":["b"]},"Body":"x","Protocol":"https","TLSSkipVerify":true,"Command":"true","Args":["a"],"OnUpdate":"ignore_warnings"},` +
				`{"Name":"up","Type":"http","Path":"/","TLSServerName":"a","TLSSkipVerify":true,"command":"true"},` +
				`{"Name":"run","Type":"script","Command":"true","Path":"/","PortLabel":"http","Address":"a","OnUpdate":"ignore_warnings"},` +
				`{"Name":"plain","Type":"tcp","Path":"","Header":{},"Args":[],"TLSSkipVerify":false,"OnUpdate":"ignore"},` +
				`{"Name":"secure","Type":"http","Path":"/","Protocol":"https","TLSServerName":"a","TLSSkipVerify":true,"OnUpdate":"require_healthy"}]}]`),
			warnings: []string{
				`group "web": service "api".check "open".args has no effect with type "tcp": it is for type script`,
				`group "web": service "api".check "open".body has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "open".command has no effect with type "tcp": it is for type script`,
				`group "web": service "api".check "open".header has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "open".method has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "open".on_update "ignore_warnings" has no effect with type "tcp": it is for type script`,
				`group "web": service "api".check "open".path has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "open".protocol has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "open".tls_skip_verify has no effect with type "tcp": it is for type http`,
				`group "web": service "api".check "up".tls_server_name has no effect with protocol "": it is for protocol https`,
				`group "web": service "api".check "up".tls_skip_verify has no effect with protocol "": it is for protocol https`,
				`group "web": service "api".check "up".command has no effect with type "http": it is for type script`,
				`group "web": service "api".check "run".address has no effect with type "script": it is for type http or tcp`,
				`group "web": service "api".check "run".path has no effect with type "script": it is for type http`,
				`group "web": service "api".check "run".port has no effect with type "script": it is for type http or tcp`,
			},
		},
		"the defaults of no checks": {
			body: ofTask(`"Services":[{"Name":"api","Provider":"nomad","OnUpdate":"ignore","CheckRestart":{"Limit":3},"Checks":[]},{"Name":"web","Provider":"nomad","OnUpdate":"require_healthy"}]`),
			warnings: []string{
				`group "web", task "main": service "api".check_restart has no effect without checks`,
				`group "web", task "main": service "api".on_update "ignore" has no effect without checks`,
			},
		},
		// A block with a grace alone was kept without a word, and never restarted anything.
		"restarts without a limit": {
			body: ofTask(`"Services":[{"Name":"api","Provider":"nomad","CheckRestart":{"Grace":10000000000},"Checks":[{"Name":"a","Type":"tcp"},{"Name":"b","Type":"tcp","CheckRestart":{"Limit":0,"IgnoreWarnings":true}},{"Name":"c","Type":"tcp","CheckRestart":{"limit":3}},{"Name":"d","Type":"tcp","CheckRestart":null}]},` +
				`{"Name":"web","Provider":"nomad","CheckRestart":{"Limit":3},"Checks":[{"Name":"a","Type":"tcp","CheckRestart":{"Grace":5}},{"Name":"b","Type":"tcp"}]},` +
				`{"Name":"old","Provider":"nomad","CheckRestart":null,"Checks":[{"Type":"tcp","CheckRestart":{}},{"Type":"tcp"}]}]`),
			warnings: []string{
				`group "web", task "main": service "api".check_restart has no effect without a limit: it restarts nothing`,
				`group "web", task "main": service "api".check "b".check_restart has no effect without a limit: it restarts nothing`,
				`group "web", task "main": service "old".check.check_restart has no effect without a limit: it restarts nothing`,
			},
		},
		// It was sent as it is written, as the reference does, and servers answered 405.
		"methods in lower case": {
			body: ofGroup(`"Services":[{"Name":"api","Provider":"nomad","Checks":[{"Name":"a","Type":"http","Path":"/","Method":"get"},{"Name":"b","Type":"http","Path":"/","Method":"Post"},` +
				`{"Name":"c","Type":"http","Path":"/","Method":"GET"},{"Name":"d","Type":"http","Path":"/","Method":"purge"},{"Name":"e","Type":"http","Path":"/","Method":""}]}]`),
			warnings: []string{
				`group "web": service "api".check "a".method "get" is sent as it is written: the case matters, and most servers expect GET`,
				`group "web": service "api".check "b".method "Post" is sent as it is written: the case matters, and most servers expect POST`,
			},
		},
		// Null became an empty text, an empty block or nothing.
		"null in lists and maps": {
			body: `{"Job":{"ID":"web","Datacenters":[null],"Meta":{"a":null},"Constraints":[null],"TaskGroups":[null,{"Name":"web","Networks":[null],` +
				`"Services":[{"Name":"api","Provider":"nomad","Tags":["a",null],"Checks":[{"Name":"up","Type":"http","Header":{"A":[null]}}]}],"Volumes":{"data":null}}]}}`,
			err: `job: constraint: element 0 is null: give it a value, or leave it out
job: datacenters: element 0 is null: give it a value, or leave it out
job: meta: "a" is null: give it a value, or leave it out
group: element 0 is null: give it a value, or leave it out
group "web": network: element 0 is null: give it a value, or leave it out
group "web": service "api".check "up".header "A": element 0 is null: give it a value, or leave it out
group "web": service "api".tags: element 1 is null: give it a value, or leave it out
group "web": volume: "data" is null: give it a value, or leave it out`,
		},
		// One of the values was lost, by the order of the text or by chance.
		"a key twice":                                {body: `{"Job":{"ID":"web","TaskGroups":[{"Count":1},{"Name":"web","Meta":{"a":"1","A":"2","\u0061":"3"}}]}}`, err: `Job.TaskGroups[1].Meta.a is in the request body twice`},
		"a key in two spellings":                     {body: ofGroup(`"Count":1,"count":2,"Meta":{"a":"1","A":"2"}`), err: `group "web": "Count" and "count" are the same key`},
		"null in a config, and fields that are null": {body: ofTask(`"Config":{"args":[null],"a":{"b":null}},"Services":null,"Env":null,"Leader":null`)},
		"health by hand": {
			body: ofGroup(`"Migrate":{"HealthCheck":"manual"}`),
			err:  `group "web": migrate.health_check "manual" is not supported: nothing can set the health of an allocation; write checks or task_states, in both blocks if checks must not decide`,
		},
		"a host volume": {
			body: ofGroup(`"Volumes":{"data":{"Type":"host","Sticky":true}}`),
			err: `group "web": volume "data".sticky is not supported: only host volumes are sticky` + "\n" +
				`group "web": volume "data".type "host" is not supported: a volume has the type csi`,
		},
		"a label": {
			body: ofTask(`"VolumeMounts":[{"Volume":"data","SELinuxLabel":"z"}]`),
			err:  `group "web", task "main": volume_mount "data".selinux_label is not supported: the clients set no labels`,
		},
		"a storage plugin without a type": {
			body:     ofTask(`"CSIPluginConfig":{"ID":"disks"}`),
			warnings: []string{`group "web", task "main": csi_plugin has no effect: without a type the task is a storage plugin only to drains`},
		},
		"blocks of another form": {
			body: `{"Job":{"Update":7,"TaskGroups":[{"Name":"web","Networks":{},"Services":"x","Periodic":{}}]}}`,
			warnings: []string{
				`group "web": network is no list and has no effect`,
				`group "web": unknown key "Periodic" has no effect`,
				`group "web": service is no list and has no effect`,
				"job: update is no object and has no effect",
			},
		},
		"a duration that is none": {
			body: ofTask(`"KillTimeout":"5 minutes"`),
			err:  `group "web", task "main": kill_timeout is "5 minutes"; it must be a duration such as "30s", or a whole number of nanoseconds`,
		},
		"no object": {body: `[]`, err: "the request body is a list; it must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, warnings, err := jobfields.Check([]byte(test.body), "eu")
			if test.err != "" {
				must.EqError(t, err, test.err)
				return
			}
			must.NoError(t, err)
			must.Eq(t, test.warnings, warnings)
			must.Eq(t, test.body, string(read))
		})
	}
}

// A duration may be a text. Everything else of the body stays, also numbers that no float has.
func TestCheck_durations(t *testing.T) {
	t.Parallel()
	read, warnings, err := jobfields.Check([]byte(`{"Job":{"Migrate":{"MinHealthyTime":"1m30s"},"TaskGroups":[{"ShutdownDelay":7,"Tasks":[{"killtimeout":"5s","Config":{"n":12345678901234567890}}]}]}}`), "")
	must.NoError(t, err)
	must.SliceEmpty(t, warnings)
	must.Eq(t, `{"Job":{"Migrate":{"MinHealthyTime":90000000000},"TaskGroups":[{"ShutdownDelay":7,"Tasks":[{"Config":{"n":12345678901234567890},"killtimeout":5000000000}]}]}}`, string(read))
}

// The warnings and the reasons of an answer are bounded, and so is the work for keys that resemble none.
func TestCheck_bounds(t *testing.T) {
	t.Parallel()
	var keys, mounts []string
	for i := range 1000 {
		keys = append(keys, `"`+strconv.Itoa(i)+strings.Repeat("y", 1000)+`":1`)
		mounts = append(mounts, `{"Volume":"v`+strconv.Itoa(i)+`","SELinuxLabel":"z"}`)
	}
	_, warnings, err := jobfields.Check([]byte(ofGroup(strings.Join(keys, ","))), "")
	must.NoError(t, err)
	must.Len(t, 101, warnings)
	must.Eq(t, "and 900 more", warnings[100])
	_, _, err = jobfields.Check([]byte(ofTask(`"VolumeMounts":[`+strings.Join(mounts, ",")+`]`)), "")
	must.StrHasSuffix(t, "\nand 990 more", err.Error())
}
