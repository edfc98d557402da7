package planted

// FailedTest is failedTest.
func FailedTest(output string) string { return failedTest(output) }
