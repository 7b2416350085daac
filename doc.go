// Package heads is a client for a platform of conversational avatars
// ("heads"): it changes the configuration of a head without losing any of it,
// moves heads from legacy to streaming mode, registers and receives signed
// webhook events, and lets heads call tools.
//
//	client, err := heads.New(baseURL, token)
//	if err != nil {
//		return err
//	}
//	update := heads.NewHeadUpdate(headID).Greetings("Welcome back!")
//	if _, err := client.Heads.Update(ctx, update); err != nil {
//		return err
//	}
//
// Package headstest emulates the whole service, for tests and for work without
// an account.
//
// # Errors
//
// A request that is refused before it is sent gives an InvalidError, which
// names field, value and remedy. An answer outside 200 to 299 gives an *Error;
// errors.Is knows ErrNotFound, ErrRateLimited and the other sentinels. An
// answer that can't be read gives a DecodeError. Where no answer came, the
// error unwraps to that of the transport, such as context.DeadlineExceeded, and
// also to the *Error of an earlier attempt, if there was one.
//
// # Retries
//
// GET, PUT, PATCH and DELETE are repeated after an error of the transport and
// after 429, 500, 502, 503 and 504. POST is repeated only where it can't have
// been carried out: after 429, after 503 with Retry-After, and after an error
// that came before the request could be written. All other answers are final.
//
// The wait before a repeat is random between 0 and a limit that doubles, from
// 200 ms up to 10 s, for 3 retries; WithRetryPolicy changes that. Retry-After
// is obeyed, but for one of 0 or gone by, which does not shorten the wait. A wait that is longer than the policy allows or than the context
// lasts is not begun: the call returns at once with the answer it has. The end
// of the context ends a wait at once.
//
// Every attempt may take 30 s (WithAttemptTimeout), the whole call as long as
// its context. An answer that breaks off counts as no answer.
//
// # Safety
//
// No log line, error, observer value or printed value shows a token, a shared
// key, an API key, a query string or a body. Types that hold one print
// themselves without it, with every verb that go vet lets through;
// Secret.Reveal returns a value. Two texts come from outside. Error.Message is
// one line of at most 200 characters from the answer. What a transport or a
// proxy says of its failure is one line of at most 400 characters. In both, the
// client's token is masked, also where it is escaped, and so is everything from
// a question mark to the next space. SECURITY.md says what is promised in
// detail.
//
// Redirects are never followed, so a token does not travel to another host.
// Answers are read up to 8 MiB.
//
// A Client and its services are safe for concurrent use. Updates that are
// still being built are not.
package heads
