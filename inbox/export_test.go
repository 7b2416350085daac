package inbox

// NewRecord lets tests fill tables faster than Append does.
var NewRecord = newRecord
