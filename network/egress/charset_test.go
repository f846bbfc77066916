// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/network/policy"
)

func TestTheProgramDoesNotChooseTheCharacterSet(t *testing.T) {
	kind := make(chan string, 1)
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Accept-Charset", "A-Im", "Range", "If-Range"} {
			if got := r.Header.Values(name); len(got) > 0 {
				t.Errorf("the host got %s: %q", name, got)
			}
		}
		w.Header()["Content-Type"] = strings.Split(<-kind, "\n")
		_, _ = io.WriteString(w, "whatever "+r.Header.Get("Authorization"))
	}, secret("KEY", "allowed.example"))
	c := g.client(web, true)
	get := func(of string) (int, string) {
		kind <- of
		status, _, body := g.do(c, "GET", "https://allowed.example/", func(r *http.Request) {
			for _, name := range []string{"Accept-Charset", "accept-charset"} {
				r.Header[name] = []string{"utf-16"}
			}
			r.Header.Set("A-IM", "vcdiff")
		})
		return status, body
	}
	for _, of := range []string{
		"text/plain; charset=utf-16", "text/plain;charset=UTF-16LE", `text/plain; charset="utf-16be"`, "text/html; x=y; Charset = UTF-7", "application/json; charset=utf-32",
		"text/plain; charset=ibm037", "text/plain; charset=cp1047", "text/plain; charset=ebcdic-cp-us", "text/plain; charset=ucs-2", "text/plain; charset=iso-10646-ucs-4",
		"text/plain; charset=hz-gb-2312", "text/plain; charset=iso-2022-kr", "text/plain; charset=scsu", "text/plain; charset=no-such",
		"text/plain; charset=utf-8; charset=utf-16", "text/plain; charset*=us-ascii'en'utf-16", "text/plain\ntext/plain; charset=utf-16", "charset=utf-16", "text/plain, text/html; charset='utf-16'",
	} {
		if status, body := get(of); status != 502 || !strings.Contains(body, "encoding") || strings.Contains(body, "whatever") {
			t.Errorf("%q: %d %q", of, status, body)
		}
	}
	g.noted("tcp", "allowed.example", policy.Encoding)
	for _, of := range []string{
		"text/plain", "", "text/html; charset=utf-8", `application/json;charset="UTF-8"`, "text/plain; charset=ISO-8859-1", "text/plain; charset=windows-1252", "text/plain; charset=",
		"text/html; charset=utf-8; charset=utf-8", "text/plain; charset=Shift_JIS", "multipart/mixed; boundary=charset", "text/plain; charset=us-ascii",
	} {
		if status, body := get(of); status != 200 || body != "whatever Bearer "+strings.Repeat("*", len(value)) {
			t.Errorf("%q: %d %q", of, status, body)
		}
	}
}
