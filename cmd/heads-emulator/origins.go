package main

import (
	"net/http"
	"slices"
	"strings"
)

// allowOrigins allows web pages of the given origins to call the operations. It
// answers the preflight requests of their browsers, which carry no credential, and
// adds the headers that let the pages read the answers.
func allowOrigins(operations http.Handler, origins []string) http.Handler {
	if len(origins) == 0 {
		return operations
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", controlPrefix) { // for its own pages only
			operations.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(origins, origin) {
			operations.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			operations.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		w.WriteHeader(http.StatusNoContent)
	})
}
