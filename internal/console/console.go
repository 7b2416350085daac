// Package console has the web page of the emulator: its files, and the headers that
// isolate it from other sites.
package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
)

//go:embed assets
var assets embed.FS

var page = template.Must(template.ParseFS(assets, "assets/index.html"))

// types has the content types of the files that the page loads.
var types = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// SetSecurityHeaders sets the headers of every answer: the page loads nothing
// from elsewhere, runs no inline script, and is shown in no frame.
func SetSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept")
}

// ServePage serves the page with its initial state, which is JSON.
func ServePage(w http.ResponseWriter, state string) error {
	var b bytes.Buffer
	if err := page.Execute(&b, state); err != nil {
		return fmt.Errorf("the page can't be written: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // an error means that the caller has left
	return nil
}

// ServeAsset serves a file that the page loads, and reports whether there is a file
// of that name.
func ServeAsset(w http.ResponseWriter, name string) bool {
	contentType, ok := types[path.Ext(name)]
	text, err := assets.ReadFile("assets/" + name)
	if !ok || err != nil {
		return false
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(text) // an error means that the caller has left
	return true
}
