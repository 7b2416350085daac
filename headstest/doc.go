// Package headstest provides a stateful emulator of the whole service, for tests
// and for development without an account.
//
// NewServer starts an emulator on a loopback port, as httptest.NewServer does:
//
//	srv := headstest.NewServer()
//	defer srv.Close()
//	id := srv.AddHead(headstest.Head{Name: "Ada"})
//	client := srv.Client()
//
// NewEmulator returns an http.Handler without a listener. [Emulator.Client] returns
// a client that calls it without a socket. With [WithDeliveryHandler] it calls your
// handlers without a socket. A test in a testing/synctest bubble needs both. The
// emulator uses only package time, so it follows the clock of the bubble in which
// it was created:
//
//	synctest.Test(t, func(t *testing.T) {
//		mux := http.NewServeMux() // your handlers
//		e := headstest.NewEmulator(headstest.WithDeliveryHandler(mux))
//		defer e.Close()
//		client := e.Client()
//		…
//	})
//
// # Rules
//
// The emulator follows every rule of the service's contract: the bearer
// credential, the states of a head and the changes between them, read-only fields
// that are ignored, HTTPS URLs, omitted event flags that are off, settings that
// are replaced as a whole, events that need enabled delivery and their own flag,
// five seconds for a receiver, three redeliveries with growing waits, the order of
// events for each webhook. If the contract does not document the answer of an operation, the
// body is empty, unless WithResponses sets another one.
//
// # What is not in the contract
//
// The emulator serves three operations that were seen in the field but are not in
// the contract: GET /head/{headId}/enable-events, GET
// /head/{headId}/conversation-settings and PUT /head/{headId}/splitter. Two rules
// for tools were also seen in the field. A parameter without a type is accepted.
// Parameters as an object are stored, but the head can't be loaded and its sessions
// fail. A third rule is an option, WithStrictOrder: a webhook that was registered
// before delivery was enabled receives nothing.
//
// The service may have other operations. The emulator answers them 404, even
// without a token: "POST /head/create is not an operation of this emulator; the
// nearest one is PUT /head/update". A last segment of letters, such as all, is read
// as the name of an operation unless it is the id of a record.
//
// # Refusals
//
// The body of every refusal is {"statusCode": n, "message": "...", "error": "..."}.
// The contract documents no status codes; the emulator uses these:
//
//	400  a body, a query or a value that breaks the contract
//	401  no bearer credential, or the wrong one
//	404  an unknown head, visual or webhook; a method and path that are no
//	     operation of the emulator, with the nearest operation
//	405  the path of an operation, with another method
//	409  a mode switch that the mode of the head's visual does not allow
//	413  a body above 1 MiB
//	415  a body that isn't application/json
//	422  a provider or a voice that can't stream, for a head that streams or is switched
//	429  a request above the rate of WithRateLimit
package headstest
