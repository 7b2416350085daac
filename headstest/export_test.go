package headstest

// Routes returns the operations of the emulator.
func Routes() []string { return patterns() }
