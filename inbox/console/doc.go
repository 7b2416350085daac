// Package console is a web page for the operator of an inbox: what waits, what failed,
// and, if it is allowed, dead letters redriven or deleted.
//
// The page has no login. Put it behind your own, or serve it on a loopback address.
package console
