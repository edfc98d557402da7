// Package scripted is a double of the storage of one machine, in virtual time: its storage plugins, its
// mount table, and the book of the claims that the servers have given to it.
//
// A storage plugin is a task. A call goes to the task with the id of its start, and has no answer but an
// error if no process of the task lives. A [Fault] says what happens to a call. The simulator plays the
// client over the double, and its judges read the tables. Nothing but the double writes them.
//
// Time and replies are as for the doubles of drivers: nothing blocks, and each answer comes later through a
// function, at most once. None of the types is safe for concurrent use.
//
// # Strict
//
// Each call is noted when it comes. [Call.Wrong] says what is out of order with it:
//
//   - A call for a volume comes while the same client waits for the answer to another one.
//   - A volume is staged or published without a claim of the allocation, or by another name than that
//     of the claim.
//   - It is staged by a plugin that does not stage, or published before it is staged, or with other mount
//     options than those of the stage.
//   - It is unstaged while it is published in the same usage.
//   - It is released while it is published for the allocation, or while its usage is staged and no other
//     allocation of the machine has a claim for that.
//
// A call that is out of order takes effect nevertheless, as with a careless plugin. A publish without a stage
// fails with the class [volume.NotStaged].
package scripted
