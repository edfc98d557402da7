package jobfields

import "slices"

// requestFields are the fields of a request beside the job.
func requestFields() []Field {
	return []Field{
		block("Job").named("job"),
		kept("EnforceIndex").named(""),
		kept("JobModifyIndex").named(""),
		kept("Diff").named(""),
		notRead("Submission", "the servers keep no files of jobs").named(""),
		notRead("Region", "the query string has it").named(""),
		notRead("Namespace", "the query string has it").named(""),
		notRead("SecretID", "a header has it").named(""),
		warned("PolicyOverride", "there are no policies").named(""),
		kept("PreserveCounts").named(""),
		kept("PreserveResources").named(""),
		kept("EvalPriority").named(""),
	}
}

func jobFields() []Field {
	const set = "the servers set it"
	return slices.Concat([]Field{
		refused("Region", "the servers run the jobs of their own region").silent(`"global"`, `""`),
		kept("Namespace"),
		kept("ID"),
		warned("Name", "the name of a job is its id"),
		kept("Type"),
		kept("Priority"),
		warned("AllAtOnce", "the scheduler places each allocation as soon as it can"),
		kept("Datacenters").remark("a list with `*` is every datacenter"),
		kept("NodePool"),
	}, constraints(""), []Field{
		warned("Affinities[]", noPreferences).named("affinity"),
		warned("Spreads[]", noPreferences).named("spread"),
		block("TaskGroups[]").named("group"),
	}, updates(""), []Field{
		refused("Multiregion", "a job has one region"),
		refused("Periodic", "the servers start no jobs by the clock"),
		refused("ParameterizedJob", "the servers dispatch no jobs").named("parameterized"),
	}, reschedules("Reschedule"), migrates("").remark("each group without the field gets it"), []Field{
		kept("Meta").remark(ourMeta),
		warned("UI", "the servers have no such page"),

		kept("Stop").named(""),
		warned("ParentID", noChildren).named(""),
		warned("Dispatched", noChildren).named(""),
		warned("DispatchIdempotencyToken", noChildren).named(""),
		warned("Payload", noChildren).named(""),
		warned("ConsulNamespace", noConsul),
		warned("VaultNamespace", noVault),
		warned("NomadTokenID", "no token belongs to a job").named("nomad_token_id"),
		warned("VersionTag", "versions have no tags").named(""),
		notRead("Status", set).named(""),
		notRead("StatusDescription", set).named(""),
		notRead("Stable", set).named(""),
		notRead("Version", set).named(""),
		notRead("SubmitTime", set).named(""),
		notRead("CreateIndex", set).named(""),
		notRead("ModifyIndex", set).named(""),
		notRead("JobModifyIndex", set).named(""),
	})
}

// Reasons of several fields.
const (
	noPreferences = "the scheduler has no preferences for nodes beside those for devices"
	noChildren    = "no job is made from another one"
	noConsul      = "the servers and the clients do not use Consul"
	noVault       = "the servers and the clients do not use Vault"
	noIdentity    = "the servers sign no identities"
	noScaling     = "the count of a group is that of the job"
	ourMeta       = "[some keys are ours](#keys-of-meta)"
	hostNetwork   = "tasks use the network of their host"
)

// rows are rows of one block.
type rows []Field

// remark adds a remark to each row with a verdict.
func (r rows) remark(why string) rows {
	for i := range r {
		if r[i].Verdict == Kept {
			r[i].Why = why
		}
	}
	return r
}

func constraints(below string) rows {
	at := below + "Constraints[]"
	return rows{
		block(at).named("constraint"),
		kept(at + ".LTarget").named("attribute"),
		kept(at + ".RTarget").named("value"),
		kept(at + ".Operand").named("operator").remark("[some are refused](api.md), such as `distinct_property`; `distinct_hosts` is for a job or a group"),
	}
}

// updates silently accepts the defaults of the reference, and the empty block, which the servers answer.
func updates(below string) rows {
	at := below + "Update"
	const stops = "a rollout stops at an unhealthy allocation, until it has recovered or a newer version has come"
	return rows{
		block(at),
		warned(at+".Stagger", "a rollout continues as soon as the replacements are healthy").silent(`0`, `30000000000`),
		kept(at + ".MaxParallel").remark("0 is all at once; batch and sysbatch jobs are always replaced at once"),
		healthCheck(at),
		kept(at + ".MinHealthyTime").duration(),
		kept(at + ".HealthyDeadline").duration(),
		warned(at+".ProgressDeadline", stops).silent(`0`, `600000000000`),
		warned(at+".Canary", "the rollout runs without canaries"),
		warned(at+".AutoRevert", stops),
		warned(at+".AutoPromote", "the rollout runs without canaries"),
	}
}

// healthCheck is kept except for one value.
func healthCheck(at string) Field {
	return refused(at+".HealthCheck", "nothing can set the health of an allocation; write checks or task_states, in both blocks if checks must not decide").
		silent(`""`, `"checks"`, `"task_states"`)
}

func reschedules(at string) rows {
	return rows{
		block(at).named("reschedule"),
		kept(at + ".Attempts").remark("0 without `unlimited` places nothing again; `unlimited`, the default of services, ignores it"),
		kept(at + ".Interval").duration(),
		kept(at + ".Delay").duration(),
		kept(at + ".DelayFunction"),
		kept(at + ".MaxDelay").duration(),
		kept(at + ".Unlimited"),
	}
}

func migrates(below string) rows {
	at := below + "Migrate"
	return rows{
		block(at),
		kept(at + ".MaxParallel"),
		healthCheck(at),
		kept(at + ".MinHealthyTime").duration(),
		kept(at + ".HealthyDeadline").duration(),
		{Path: at + ".MaxSurge", Verdict: Kept, Why: "how many allocations may have their replacement beside them while a drain moves the group", Ours: true},
	}
}

func restarts(below string) rows {
	at := below + "RestartPolicy"
	return rows{
		block(at).named("restart"),
		kept(at + ".Attempts"),
		kept(at + ".Interval").duration(),
		kept(at + ".Delay").duration(),
		kept(at + ".Mode"),
		warned(at+".RenderTemplates", "the clients render no templates"),
	}
}

// networks has ports of the node. Everything that needs a network of the allocation's own is refused or warned of.
func networks(below string) rows {
	at := below + "Networks[]"
	const host = hostNetwork + "; leave the mode out, or write host"
	port := func(list, name string, value Field) rows {
		return rows{
			block(at + list).named(name),
			kept(at + list + ".Label").named(""),
			value.named("static"),
			kept(at + list + ".To").remark("the driver maps the port to it; a driver that maps no ports ignores it, but `NOMAD_PORT_x` has it"),
			refused(at+list+".HostNetwork", "a node has one network; leave host_network out").silent(`""`, `"default"`),
			warned(at+list+".IgnoreCollision", "a static port has one owner on each node"),
		}
	}
	return slices.Concat(rows{
		block(at).named("network"),
		refused(at+".Mode", host).silent(`""`, `"host"`),
	}, port(".ReservedPorts[]", "reserved_ports", kept(at+".ReservedPorts[].Value")),
		port(".DynamicPorts[]", "port", refused(at+".DynamicPorts[].Value", "a port with a number belongs to ReservedPorts")), rows{
			warned(at+".Device", hostNetwork),
			warned(at+".CIDR", hostNetwork),
			warned(at+".IP", hostNetwork),
			warned(at+".DNS", hostNetwork),
			warned(at+".Hostname", hostNetwork),
			warned(at+".MBits", "nothing limits the network of a task").named("mbits"),
			warned(at+".CNI", hostNetwork),
		})
}
