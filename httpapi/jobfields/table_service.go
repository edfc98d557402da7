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
	ofHTTP := func(key string) Field { return kept(check+key).with("Type", "http") }
	ofTLS := func(key string) Field { return ofHTTP(key).with("Protocol", "https") }
	ofScript := func(key string) Field { return kept(check+key).with("Type", "script") }
	return slices.Concat(rows{
		block(at).named("service"),
		kept(at + ".Name").remark("the default is the job, the group and the task, with hyphens"),
		refused(at+".Provider", noConsul+"; write nomad").silent(`"nomad"`),
		kept(at + ".PortLabel").named("port"),
		kept(at + ".Address"),
		refused(at+".AddressMode", address).silent(`""`, `"auto"`, `"host"`),
		kept(at + ".Tags"),
		kept(at + ".TaskName").named("task"),
		kept(at+".OnUpdate").remark("the default of the checks").with("Checks").needing("ignore", "ignore_warnings"),
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
	}, checkRestarts(block(at+".CheckRestart").with("Checks")).remark("the default of the checks"), rows{
		block(check).named("check"),
		kept(check + ".Name").remark("unique in its service"),
		refused(check+".Type", grpc).silent(`"http"`, `"tcp"`, `"script"`),
		kept(check + ".Interval").duration(),
		kept(check + ".Timeout").duration(),
		ofScript(".OnUpdate").needing("ignore_warnings"),
		kept(check+".PortLabel").named("port").with("Type", "http", "tcp"),
		Field{Path: check + ".Address", Name: "address", Verdict: Kept, Ours: true}.with("Type", "http", "tcp"),
		refused(check+".AddressMode", address).silent(`""`, `"auto"`, `"host"`),
		kept(check + ".SuccessBeforePassing"),
		kept(check + ".FailuresBeforeCritical"),
		warned(check+".FailuresBeforeWarning", "a check passes or fails"),
		refused(check+".Protocol", http).silent(`""`, `"http"`, `"https"`).with("Type", "http"),
		ofHTTP(".Method").remark("sent as it is written, with a warning of a method such as `get`"),
		ofHTTP(".Path"),
		ofHTTP(".Header"),
		ofHTTP(".Body"),
		ofTLS(".TLSServerName").named("tls_server_name"),
		ofTLS(".TLSSkipVerify").named("tls_skip_verify"),
		ofScript(".Command"),
		ofScript(".Args"),
		kept(check + ".TaskName").named("task").remark("the task of a script, and of check_restart"),
		refused(check+".Expose", noProxies),
		warned(check+".Advertise", noConsul),
		warned(check+".InitialStatus", "a check has no status before its first run").silent(`""`, `"critical"`),
		warned(check+".Notes", catalogue),
		warned(check+".GRPCService", grpc).named("grpc_service"),
		warned(check+".GRPCUseTLS", grpc).named("grpc_use_tls"),
	}, checkRestarts(block(check+".CheckRestart")))
}

func checkRestarts(of Field) rows {
	at := of.Path
	return rows{
		of,
		kept(at + ".Limit").remark("0 restarts nothing, with a warning"),
		kept(at + ".Grace").duration(),
		kept(at + ".IgnoreWarnings"),
	}
}
