// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"html"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// fail answers a request that failed: people get a page, programs a problem.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error, at place) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the visitor is gone
	}
	status := 0
	switch fault.Of(err) {
	case fault.Unavailable:
		status = http.StatusBadGateway
	case fault.State:
		status = http.StatusServiceUnavailable
	}
	status, problem := p.problem(err, status)
	level := slog.LevelDebug
	if status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	p.log.Log(r.Context(), level, "a preview's request failed", "sandbox", at.sandbox, "port", at.port, "status", status, "error", err)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if e := fault.As(err); e.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, e.Retry.Seconds()))))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="sandpit"`)
	}
	if at.token != "" {
		h.Set("Access-Control-Allow-Origin", "*") // its page may read what went wrong
	}
	text := problem
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		text = page(status, err)
	} else {
		h.Set("Content-Type", "application/problem+json")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // the client went away: nothing to report
	}
}

// page returns the page that shows an error to people.
func page(status int, err error) []byte {
	message, remedy := "internal error", ""
	if status != http.StatusInternalServerError {
		e := fault.As(err)
		message, remedy = sandbox.Clip(e.Message, 1000), sandbox.Clip(e.Remedy, 1000)
	}
	var b strings.Builder
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) + "</title>\n" +
		"<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;padding:0 1em;color:#222;background:#fff}" +
		"p.remedy{color:#555}h1{font-size:1.3em}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}p.remedy{color:#999}}</style></head>\n" +
		"<body><h1>" + html.EscapeString(title) + "</h1>\n<p>" + html.EscapeString(message) + "</p>\n")
	if remedy != "" {
		b.WriteString("<p class=\"remedy\">→ " + html.EscapeString(remedy) + "</p>\n")
	}
	b.WriteString("</body></html>\n")
	return []byte(b.String())
}
