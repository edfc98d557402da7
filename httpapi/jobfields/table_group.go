package jobfields

import "slices"

func groupFields() []Field {
	const in = "TaskGroups[]."
	const volume, disconnect, disk = in + "Volumes{}", in + "Disconnect", in + "EphemeralDisk"
	return slices.Concat([]Field{
		kept(in + "Name"),
		kept(in + "Count"),
	}, constraints(in), []Field{
		warned(in+"Affinities[]", noPreferences).named("affinity"),
		warned(in+"Spreads[]", noPreferences).named("spread"),
		block(in + "Tasks[]").named("task"),

		block(volume).named("volume"),
		kept(volume + ".Name"),
		refused(volume+".Type", "a volume has the type csi").silent(`"csi"`),
		kept(volume + ".Source"),
		kept(volume + ".ReadOnly"),
		refused(volume+".Sticky", "only host volumes are sticky"),
		kept(volume + ".AccessMode"),
		kept(volume + ".AttachmentMode"),
		block(volume + ".MountOptions"),
		kept(volume + ".MountOptions.FSType").named("fs_type"),
		kept(volume + ".MountOptions.MountFlags"),
		kept(volume + ".PerAlloc"),

		block(disconnect),
		kept(disconnect + ".LostAfter").duration(),
		kept(disconnect + ".StopOnClientAfter").duration(),
		kept(disconnect + ".Replace"),
		warned(disconnect+".Reconcile", "it acts as keep_original").silent(`""`, `"keep_original"`, `"keep_replacement"`),

		block(disk),
		kept(disk + ".Sticky"),
		kept(disk + ".Migrate"),
		kept(disk + ".SizeMB").named("size"),
	}, restarts(in), reschedules(in+"ReschedulePolicy"), updates(in), migrates(in), networks(in), []Field{
		kept(in + "Meta").remark(ourMeta),
	}, services(in), []Field{
		kept(in + "ShutdownDelay").duration(),
		kept(in + "MaxRunDuration").duration().remark("[the allocation fails then](client.md#the-longest-run)"),
		kept(in + "StopAfterClientDisconnect").duration().remark("an old name of `Disconnect.StopOnClientAfter`"),
		kept(in + "MaxClientDisconnect").duration().remark("an old name of `Disconnect.LostAfter`"),
		kept(in + "PreventRescheduleOnLost").remark("an old name of a `Disconnect.Replace` of false"),
		warned(in+"Scaling", noScaling),
		warned(in+"Consul", noConsul),
	})
}

func taskFields() []Field {
	const in = "TaskGroups[].Tasks[]."
	const need, device, mount = in + "Resources", in + "Resources.Devices[]", in + "VolumeMounts[]"
	const logs, plugin = in + "LogConfig", in + "CSIPluginConfig"
	return slices.Concat([]Field{
		kept(in + "Name"),
		kept(in + "Driver"),
		kept(in + "User"),
		block(in + "Lifecycle"),
		kept(in + "Lifecycle.Hook"),
		kept(in + "Lifecycle.Sidecar"),
		kept(in + "Config").remark("[the driver's keys](drivers.md)"),
	}, constraints(in), []Field{
		warned(in+"Affinities[]", noPreferences).named("affinity"),
		kept(in + "Env"),
	}, services(in), []Field{
		block(need),
		kept(need + ".CPU"),
		kept(need + ".Cores").remark("it replaces `cpu`: each counts as a cpu of 1000"),
		kept(need + ".MemoryMB").named("memory"),
		kept(need + ".MemoryMaxMB").named("memory_max").remark("at least `memory`, or -1 for no limit; the scheduler counts `memory`"),
		kept(need + ".DiskMB").named("disk"),
		warned(need+".NUMA", "the scheduler does not distinguish the parts of a machine"),
		warned(need+".SecretsMB", "the folder for secrets has no size").named("secrets"),
		warned(need+".IOPS", "nothing limits it"),
		{Path: need + ".GPU", Verdict: Kept, Why: "thousandths of a GPU", Ours: true},
	}, networks(need+"."), []Field{
		block(device).named("device"),
		kept(device + ".Name").named(""),
		kept(device + ".Count").remark("of one model: a request gets no devices of two models"),
	}, constraints(device+"."), []Field{
		block(device + ".Affinities[]").named("affinity"),
		kept(device + ".Affinities[].LTarget").named("attribute"),
		kept(device + ".Affinities[].RTarget").named("value"),
		kept(device + ".Affinities[].Operand").named("operator"),
		kept(device + ".Affinities[].Weight"),
	}, restarts(in), []Field{
		kept(in + "Meta"),
		kept(in + "KillTimeout").duration(),
		kept(in + "ShutdownDelay").duration(),
		kept(in + "KillSignal"),
		kept(in + "Leader"),

		block(logs).named("logs"),
		kept(logs + ".MaxFiles"),
		kept(logs + ".MaxFileSizeMB").named("max_file_size"),
		warned(logs+".Enabled", "the clients collect the logs of every task").silent(`true`),
		warned(logs+".Disabled", "the clients collect the logs of every task"),

		block(mount).named("volume_mount"),
		kept(mount + ".Volume"),
		kept(mount + ".Destination"),
		kept(mount + ".ReadOnly"),
		kept(mount + ".PropagationMode"),
		refused(mount+".SELinuxLabel", "the clients set no labels").named("selinux_label"),

		{Path: plugin, Name: "csi_plugin", Needs: "Type", Why: "without a type the task is a storage plugin only to drains"},
		kept(plugin + ".ID"),
		kept(plugin + ".Type"),
		kept(plugin + ".MountDir"),
		kept(plugin + ".StagePublishBaseDir"),
		kept(plugin + ".HealthTimeout").duration(),

		warned(in+"Artifacts[]", "the clients load no files").named("artifact"),
		warned(in+"Templates[]", "the clients render no templates").named("template"),
		warned(in+"Vault", noVault),
		warned(in+"Consul", noConsul),
		warned(in+"DispatchPayload", noChildren),
		warned(in+"Kind", noConsul),
		warned(in+"ScalingPolicies[]", noScaling).named("scaling"),
		warned(in+"Secrets[]", "the clients read no secrets").named("secret"),
		warned(in+"Identity", noIdentity).named(""),
		warned(in+"Identities[]", noIdentity).named("identity"),
		warned(in+"Actions[]", "nothing runs actions: use alloc exec").named("action"),
		warned(in+"Schedule", "a task runs as long as its allocation"),
	})
}
