// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"

	"sandpit.dev/api/guard"
)

const pageStyle = "body{font:16px/1.5 system-ui,sans-serif;max-width:48em;margin:3em auto;padding:0 1em;color:#222;background:#fff;overflow-wrap:anywhere}" +
	"h1{font-size:1.4em}h2{font-size:1.1em;margin:2em 0 .4em}pre{overflow-x:auto;padding:.8em;background:#f3f3f3;user-select:all}" +
	"code,pre{font:14px/1.45 ui-monospace,monospace}p{margin:.5em 0}p.note{color:#666}a{color:#0645ad}" +
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#242424}p.note{color:#999}a{color:#8ab4f8}}"

// page is a page for people, without scripts and with the one style.
type page struct {
	template *template.Template
	policy   string // the Content-Security-Policy, which allows that style alone
}

// newPage returns a page of a template that this program has. The template asks for the style by
// the function style.
func newPage(name, html string) page {
	t := template.New(name).Funcs(template.FuncMap{"style": func() template.CSS { return pageStyle }})
	sum := sha256.Sum256([]byte(pageStyle))
	return page{
		template: template.Must(t.Parse(html)), // it is ours, and a test reads it
		policy:   "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

func (p page) serve(w http.ResponseWriter, r *http.Request, data any) {
	var b bytes.Buffer
	if err := p.template.Execute(&b, data); err != nil {
		guard.Error(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(b.Bytes()) // the client went away: nothing to report
}
