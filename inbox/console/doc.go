// Package console is a web page for the operator of an inbox. It shows the events that
// wait and those that failed. If you allow it, the operator can redrive or delete dead
// letters.
//
// The page has no login. Put it behind your own, or serve it on a loopback address.
package console
