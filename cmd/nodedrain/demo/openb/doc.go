// Package openb reads a cluster from two lists in the format of Alibaba's public trace
// cluster-trace-gpu-v2023: nodes.csv, its machines, and pods.csv, its workloads.
//
// The lists have neither placements nor jobs. These rules make jobs of pods:
//
//   - Only pods in the phase Running count. Pods with equal request and QoS are one job with
//     one group, whose count is the number of pods. LS, Burstable and Guaranteed make a
//     service job, BE a batch job. The job's id is made of its QoS and request, so the order
//     of the list does not matter.
//   - The trace has no migrate limit. A tenth of a service group may be down at once, at
//     least one allocation: max_parallel = max(1, count / 10).
//   - A machine's GPU model is its node class. A pod's gpu_spec holds the classes on which
//     its group may run. GPUs are one resource in thousandths of a device. A share may be
//     spread over several devices here, which a real machine does not allow.
//   - The scheduler places the allocations, and counts those that it cannot place.
//
// Columns are found by the names in the first line; other columns are ignored. A column that
// may be empty may be missing: model and gpu_spec. An error names the file and the line.
package openb
