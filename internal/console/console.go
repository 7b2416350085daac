// Package console has the web page of the emulator: its files, and the headers that
// isolate it from other sites.
package console

import (
	"embed"
	"net/http"
	"path"
)

//go:embed assets vendored/standalone.module.js
var files embed.FS

// folders are where the files of the page are. The vendored one has the library of its
// templates, as its npm package has it.
var folders = []string{"assets/", "vendored/"}

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

// ServePage serves the page, which reads the state itself.
func ServePage(w http.ResponseWriter) { serve(w, "index.html", "text/html; charset=utf-8") }

// ServeAsset serves a file that the page loads, and reports whether there is a file
// of that name.
func ServeAsset(w http.ResponseWriter, name string) bool {
	contentType, ok := types[path.Ext(name)]
	return ok && serve(w, name, contentType)
}

func serve(w http.ResponseWriter, name, contentType string) bool {
	for _, folder := range folders {
		if text, err := files.ReadFile(folder + name); err == nil {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text) // an error means that the caller has left
			return true
		}
	}
	return false
}
