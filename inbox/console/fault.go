package console

// fault is an error with an HTTP status. Its text is shown to the user.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }
