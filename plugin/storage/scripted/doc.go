// Package scripted is a double of the storage of one machine, in virtual time: its storage plugins,
// its mount table, and the claims that the servers have granted.
//
// A storage plugin is a task. A call names the start of the task, and returns an error if no
// process of this start runs. A [scripted.Fault] states what goes wrong with a call. The simulator
// runs the client with this double, and its judges read the tables. Only the double changes them.
//
// Time and replies are as in the doubles of drivers: nothing blocks, and each answer arrives later
// through a function, at most once. None of the types is safe for concurrent use.
//
// # Strict
//
// Each call is checked when it arrives. [Call.Wrong] contains the violations of these rules:
//
//   - A call for a volume comes while the same client waits for the answer to another one.
//   - A volume is staged or published without a claim of the allocation, or by another name than
//     the one in the claim.
//   - It is staged by a plugin that does not stage, or published before it is staged, or with mount
//     options that differ from the stage.
//   - It is unstaged while it is published in the same usage.
//   - It is released while it is published for the allocation, or while its usage is staged and no
//     other allocation of the machine has a claim for the usage.
//
// A call that is out of order still takes effect, as with a careless plugin. A publish without a
// stage fails with the class [volume.NotStaged].
package scripted
