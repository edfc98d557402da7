// Package freshmachine runs the tests of a package as if the machine had started seconds ago, and
// ends every process that they leave. Packages whose tests start real processes call [Enter] in
// TestMain.
//
// A run of such a test binary has three processes. The launcher is the process that go test starts.
// Its child is the supervisor. The child of the supervisor runs the tests. Where the machine permits
// it, the supervisor is the first process of new namespaces:
//
//   - pid: the tests have small process ids, and the kernel kills all processes of the namespace
//     when the supervisor ends, also by SIGKILL.
//   - mount: the kernel removes the mounts of the tests with their last process.
//   - time: the boot clock and the monotonic clock begin at a few seconds.
//
// This needs root. For other users, and with NODEDRAIN_TEST_MACHINE=shared, the tests run in the
// namespaces of the caller. Launcher and supervisor are then subreapers: the kernel makes orphans of
// the tests their children, and they kill these. Such tests have no right to mount. Processes may
// stay only if launcher and supervisor are killed at the same time.
//
// Whichever of the three processes is killed, the others end, and no process and no mount is left.
// If go test itself is killed, the launcher ends the tests. With NODEDRAIN_TEST_MACHINE=off the tests
// run in the process of the caller, as a debugger needs it.
package freshmachine
