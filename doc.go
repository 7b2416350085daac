// Package heads is a client for a platform of conversational avatars ("heads").
// It changes single fields of a head's configuration and keeps all others,
// converts heads from legacy to streaming mode, registers webhooks, receives
// their signed events, and lets heads call tools.
//
//	client, err := heads.New(baseURL, token)
//	if err != nil {
//		return err
//	}
//	update := heads.NewHeadUpdate().Greetings("Welcome back!")
//	return client.Heads.Update(ctx, headID, update)
//
// Package headstest emulates the whole service, for tests and for development
// without an account.
//
// # Errors
//
// A call returns one of these, or an error that wraps it:
//
//   - An InvalidError, if the request was refused before it was sent. It names
//     the field, the value and the remedy.
//   - An *Error, if the service answered with a status outside 200 to 299.
//     errors.Is matches it with ErrNotFound, ErrRateLimited and the other
//     sentinels.
//   - A DecodeError, if the answer can't be read.
//   - The error of the transport or of the context, such as
//     context.DeadlineExceeded, if there was no answer. If an earlier attempt
//     was answered, the error also unwraps to the *Error of that answer.
//
// # Retries
//
// GET, PUT, PATCH and DELETE are retried after an error of the transport and
// after 429, 500, 502, 503 and 504. POST is retried only if the service can't
// have carried it out: after 429, after 503 with Retry-After, and after an error
// that occurred before the request could be written. All other answers are
// final.
//
// By default there are 3 retries. The wait before each is random, between 0 and
// a limit that starts at 200 ms and doubles up to 10 s; WithRetryPolicy changes
// these values. Retry-After is obeyed, but 0 or a date in the past does not
// shorten the wait. If the wait would exceed the policy's limit or the deadline
// of the context, the call returns at once with the last answer. A wait ends when
// the context ends.
//
// An answer 429 or 503 with Retry-After also delays the attempts of all other
// calls of the client until that time, at most for the policy's limit.
// WithRateLimit limits how many attempts start in a second.
//
// An attempt is limited to 30 s (WithAttemptTimeout); a call is limited by its
// context. An incomplete answer is treated as no answer.
//
// # Safety
//
// A secret has the type Secret and a body the type Raw. Package fmt, log/slog and
// the encoders show neither, even in fields of your own types; Secret.Reveal and
// Raw.Bytes return the values. No log line, error or observer value shows a token,
// a shared key, an API key, a query string or a body.
//
// Two texts come from other programs. Error.Message is one line of at most 200
// characters from the answer. The text of a transport or proxy error is one line
// of at most 400 characters. In both, the client's token is masked, also in its
// escaped forms, and so is everything from a question mark to the next space.
// SECURITY.md has the details.
//
// Redirects are not followed, so a token is not sent to another host. Answers
// are read up to 8 MiB.
//
// A Client and its services are safe for concurrent use. Do not change a
// HeadUpdate or WebhookUpdate while another goroutine uses it.
package heads
