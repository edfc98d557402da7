package jobfields

import "slices"

// services refuses what would send requests to other places, or give another verdict, if it were ignored.
func services(below string) rows {
	const (
		catalogue = "the catalogue has no such part"
		noProxies = "the clients run no proxies: without one, tasks would listen at and call other addresses"
		canaries  = "the rollout runs without canaries"
		address   = "a service has the address of its node; write address for another one"
		http      = "a check of type http uses http or https"
		grpc      = "a client runs checks of type http, tcp and script"
	)
	at := below + "Services[]"
	check := at + ".Checks[]"
	return slices.Concat(rows{
		block(at).named("service"),
		kept(at + ".Name").remark("the default is the job, the group and the task, with hyphens"),
		refused(at+".Provider", noConsul+"; write nomad").silent(`"nomad"`),
		kept(at + ".PortLabel").named("port"),
		kept(at + ".Address"),
		refused(at+".AddressMode", address).silent(`""`, `"auto"`, `"host"`),
		kept(at + ".Tags"),
		kept(at + ".TaskName").named("task"),
		kept(at + ".OnUpdate").remark("the default of the checks"),
		warned(at+".CanaryTags", canaries),
		warned(at+".EnableTagOverride", noConsul),
		refused(at+".Connect", noProxies),
		warned(at+".Meta", catalogue),
		warned(at+".CanaryMeta", canaries),
		warned(at+".TaggedAddresses", catalogue),
		warned(at+".Identity", noIdentity),
		warned(at+".Weights", catalogue),
		warned(at+".Cluster", noConsul).silent(`""`, `"default"`),
		warned(at+".Kind", noConsul),
	}, checkRestarts(at).remark("the default of the checks"), rows{
		block(check).named("check"),
		kept(check + ".Name").remark("unique in its service"),
		refused(check+".Type", grpc).silent(`"http"`, `"tcp"`, `"script"`),
		kept(check + ".Interval").duration(),
		kept(check + ".Timeout").duration(),
		kept(check + ".OnUpdate"),
		kept(check + ".PortLabel").named("port"),
		{Path: check + ".Address", Verdict: Kept, Ours: true},
		refused(check+".AddressMode", address).silent(`""`, `"auto"`, `"host"`),
		kept(check + ".SuccessBeforePassing"),
		kept(check + ".FailuresBeforeCritical"),
		warned(check+".FailuresBeforeWarning", "a check passes or fails"),
		refused(check+".Protocol", http).silent(`""`, `"http"`, `"https"`),
		kept(check + ".Method"),
		kept(check + ".Path"),
		kept(check + ".Header"),
		kept(check + ".Body"),
		kept(check + ".TLSServerName").named("tls_server_name"),
		kept(check + ".TLSSkipVerify").named("tls_skip_verify"),
		kept(check + ".Command"),
		kept(check + ".Args"),
		kept(check + ".TaskName").named("task"),
		refused(check+".Expose", noProxies),
		warned(check+".Advertise", noConsul),
		warned(check+".InitialStatus", "a check has no status before its first run").silent(`""`, `"critical"`),
		warned(check+".Notes", catalogue),
		warned(check+".GRPCService", grpc).named("grpc_service"),
		warned(check+".GRPCUseTLS", grpc).named("grpc_use_tls"),
	}, checkRestarts(check))
}

func checkRestarts(below string) rows {
	at := below + ".CheckRestart"
	return rows{
		block(at),
		kept(at + ".Limit").remark("0 restarts nothing"),
		kept(at + ".Grace").duration(),
		kept(at + ".IgnoreWarnings"),
	}
}
