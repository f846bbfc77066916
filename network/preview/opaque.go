// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"net/http"
	"strings"

	"sandpit.dev/fault"
)

// What a browser shows of a preview by path would have the server's own origin. So each answer says that its
// page has none: it can read nothing of the server's and nothing of other previews, and has no cookies, no storage and no
// service worker. Since a page without an origin is sent no cookie along with what it loads, what lets its
// requests in is the link's token in the path, which its relative addresses keep.

// opaque takes the server's origin away from a page, and lets it do what else pages may.
const opaque = "sandbox allow-downloads allow-forms allow-modals allow-orientation-lock allow-pointer-lock allow-popups" +
	" allow-presentation allow-scripts"

// checkWorker refuses a script that a browser asks for as a service worker's: it would see all requests below the path.
func checkWorker(r *http.Request, at place) error {
	if at.prefix == "" || r.Header.Get("Service-Worker") == "" {
		return nil
	}
	return fault.New(fault.Denied, "a preview by path has no service worker: its path is the server's").
		WithRemedy("open the preview by its host name, see docs/previews.md")
}

// preflights reports whether a browser asks what a page by a token in the path may request.
func preflights(r *http.Request, at place) bool {
	return at.token != "" && r.Method == http.MethodOptions && r.Header.Get("Origin") == nullOrigin && r.Header.Get("Access-Control-Request-Method") != ""
}

// nullOrigin is what browsers send for a page without an origin.
const nullOrigin = "null"

// allow answers a preflight: the page may request of its own program what it would if it had that program's origin.
func allow(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" {
		h.Set("Access-Control-Allow-Headers", names)
	}
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	w.WriteHeader(http.StatusNoContent)
}

// seclude makes an answer by path one of a page without an origin.
func seclude(h http.Header, at place) {
	h.Add("Content-Security-Policy", opaque)
	h.Del("Service-Worker-Allowed")
	if at.token == "" {
		return
	}
	hideName(h) // the token, here
	// Browsers would keep them for the server's host and send them on visits alone.
	h.Del("Set-Cookie")
	// Whoever has the token may read the answer, from whatever page.
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
	h.Del("Cross-Origin-Resource-Policy")
}

// sameOrigin makes a request of a page without an origin one of the program's own page, as the program would see it by
// host name.
func sameOrigin(h http.Header, at place, host, scheme string) {
	if at.token == "" {
		return
	}
	if origins := h["Origin"]; len(origins) == 1 && origins[0] == nullOrigin {
		h.Set("Origin", scheme+"://"+host)
	}
	if h.Get("Sec-Fetch-Site") == "cross-site" && h.Get("Sec-Fetch-Mode") != "navigate" {
		h.Set("Sec-Fetch-Site", "same-origin")
	}
}
