// Package listed judges the catalogue of services: guarantee S6. A [Judge] derives the instances by itself, from what it
// has seen of each allocation, and compares them with those of the product at each entry. It shares no code with the
// product.
//
//   - [Wrong]: the catalogue has exactly the instances of the allocations that run, whose stop no entry has written, nor
//     that of their job or the removal of their group, whose node is in touch or has time to return, and that are healthy if a check decides. An instance has the port of its
//     allocation, and the tag of the version of its job that was last given to it. A new version whose tasks are the same
//     is given to the allocations that run.
//   - [Unnoticed]: if an entry changes the instances, the catalogue has the index of the entry. Otherwise a reader that
//     waits for a change would wait on.
//   - [Served]: when a task gets its kill signal after its client has received the stop of the servers, no instance of its
//     allocation is listed. Traffic ends before the task.
//   - [Missing]: when all faults have ended for some time, an allocation whose main task has run for a minute on a node that
//     is connected is listed, unless it must stop or a check decides.
package listed
