// Package openb reads a cluster from two lists in the format of Alibaba's public
// trace cluster-trace-gpu-v2023: nodes.csv, its machines, and pods.csv, its
// workloads.
//
// The lists have no placement and no grouping, so both are made:
//
//   - Of the pods, those Running count. Those with equal request and QoS are one
//     job of one group, its count the number of pods. LS, Burstable and
//     Guaranteed make a service job, BE a batch job. The job is named after its
//     QoS and request, so the order of the list does not matter.
//   - The trace knows no migrate limit. A service group may have a tenth of its
//     count down at once, at least one: max_parallel = max(1, count / 10).
//   - A machine's GPU model is its node class, and a pod's gpu_spec the classes
//     its group may run on. GPUs are one counted resource in thousandths of a
//     device: that a share must lie on a single device is not modelled, so a
//     machine may look as if it had room that is spread over its devices.
//   - Placing is the scheduler's business. What it cannot place it counts.
//
// Columns are found by the names in the first line; others are ignored. Whatever
// is wrong with a list is an error that names the file and the line.
package openb
