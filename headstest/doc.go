// Package headstest is the service on your own machine: a stateful emulator of
// the whole API, for tests and for work without an account.
//
// NewServer starts one on a loopback port, as httptest.NewServer does:
//
//	srv := headstest.NewServer()
//	defer srv.Close()
//	id := srv.AddHead(headstest.Head{Name: "Ada"})
//	client := srv.Client()
//
// NewEmulator returns the http.Handler without a listener, and
// [Emulator.Client] a client that reaches it without a socket, as a test inside
// a testing/synctest bubble needs it; [WithDeliveryHandler] does the same for
// events and tool calls. The emulator keeps time with package time alone, so the
// clock of the bubble that it is made in moves it:
//
//	synctest.Test(t, func(t *testing.T) {
//		mux := http.NewServeMux() // your handlers
//		e := headstest.NewEmulator(headstest.WithDeliveryHandler(mux))
//		defer e.Close()
//		client := e.Client()
//		…
//	})
//
// # What it is strict about
//
// Everything that the service's contract says: the bearer credential, the
// states of a head and the moves between them, read-only fields that are
// ignored, HTTPS addresses, omitted event flags that are off, settings that
// are replaced as a whole, events that need both switches on, five seconds for
// a receiver, three retries with growing waits, the order of events for each
// registration. Where the contract shows no answer, the emulator is as
// unhelpful as the service may be: the body is empty, unless WithResponses
// asks for something else.
//
// # What is not in the contract
//
// Three operations were seen in the field and are served although the contract
// doesn't have them: GET /head/{headId}/enable-events, GET
// /head/{headId}/conversation-settings and PUT /head/{headId}/splitter. So is
// what the emulator does with odd tools: a parameter without a type is
// accepted; parameters as an object are stored, and sessions of that head then
// fail, since it can't be loaded.
//
// # How it refuses
//
// Every refusal carries {"statusCode": n, "message": "...", "error": "..."}.
// The contract gives no codes; these are the emulator's own choice:
//
//	400  a body, a query or a value that breaks the contract
//	401  no bearer credential, or the wrong one
//	404  an unknown path, head, visual or registration
//	405  a path that exists, with another method
//	409  a mode switch that the mode of the head's visual rules out
//	413  a body above 1 MiB
//	415  a body that isn't application/json
//	422  a provider or a voice that can't stream, for a head that does or is to
//	429  a request above the rate of WithRateLimit
package headstest
