// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"sandpit.dev/network/policy"
	"sandpit.dev/redact"
	"sandpit.dev/redact/deep"
	"sandpit.dev/redact/redacttest"
	"sandpit.dev/sandbox"
)

// percented returns all of s percent-encoded.
func percented(s string) string {
	out := ""
	for i := range len(s) {
		out += fmt.Sprintf("%%%02X", s[i])
	}
	return out
}

// pipeBody is a body that is written bit by bit.
func pipeBody(v *deep.Set) (*maskedBody, *io.PipeWriter) {
	r, w := io.Pipe()
	return newMaskedBody(v, nil, 0, r, r, nil), w
}

func TestShortBeginningsComeSoon(t *testing.T) {
	v := deep.New([]string{value})
	body, w := pipeBody(v)
	defer body.Close()
	read := make(chan string)
	go func() {
		defer close(read)
		b := make([]byte, 100)
		for {
			n, err := body.Read(b)
			read <- string(b[:n])
			if err != nil {
				return
			}
		}
	}()
	get := func(want string) {
		t.Helper()
		for got := ""; got != want; {
			select {
			case s := <-read:
				if got += s; len(got) > len(want) {
					t.Fatalf("%q, want %q", got, want)
				}
			case <-time.After(5 * time.Second):
				t.Fatalf("%q, want %q", got, want)
			}
		}
	}
	_, _ = io.WriteString(w, "ends with "+value[:3])
	get("ends with " + value[:3]) // though nothing comes after it
	_, _ = io.WriteString(w, value[3:]+" more")
	get(strings.Repeat("*", len(value)-3) + " more")
	_, _ = io.WriteString(w, value[:4])
	select {
	case s := <-read:
		t.Errorf("what is likely a value is let go: %q", s)
	case <-time.After(3 * defaultHold):
	}
	_, _ = io.WriteString(w, "?")
	get(value[:4] + "?")
	_ = w.Close()
	if s := <-read; s != "" {
		t.Errorf("after the end: %q", s)
	}
}

func TestABodyThatFailsGivesNothingThatWasKeptBack(t *testing.T) {
	v := deep.New([]string{value})
	odd := errors.New("odd")
	from := io.MultiReader(strings.NewReader("x"+value[:5]), iotest.ErrReader(odd))
	b, err := io.ReadAll(newMaskedBody(v, nil, 0, from, io.NopCloser(nil), nil))
	if string(b) != "x" || !errors.Is(err, odd) {
		t.Errorf("%q, %v", b, err)
	}
}

func TestClosingABodyEndsItsRead(t *testing.T) {
	body, w := pipeBody(deep.New([]string{value}))
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(body)
		done <- err
	}()
	_, _ = io.WriteString(w, value[:6])
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("it goes on")
	}
}

// packed gives text in a content encoding.
func packed(t *testing.T, coding, text string) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "raw deflate":
		w, _ = flate.NewWriter(&out, 6)
	default:
		return text
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.String()
}

func TestEchoesAreHidden(t *testing.T) {
	text := make(chan string, 1)
	coding := make(chan string, 1)
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" || r.Header.Get("If-Range") != "" || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("the host is asked for parts, or encoded: %v", r.Header)
		}
		auth := r.Header.Get("Authorization")
		kind := <-coding
		w.Header().Set("X-Echo", auth)
		w.Header().Set("X-"+r.Header.Get("X-Token"), "x")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("ETag", `"`+base64.StdEncoding.EncodeToString([]byte(auth))+`"`)
		w.Header().Set("Trailer", "X-Announced")
		if kind != "" {
			w.Header().Set("Content-Encoding", strings.TrimPrefix(kind, "raw "))
		}
		body := packed(t, kind, <-text)
		for n := range len(body) {
			if _, err := io.WriteString(w, body[n:n+1]); err != nil {
				return
			}
			if n%7 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
		w.Header().Set("X-Announced", auth)
		w.Header().Set(http.TrailerPrefix+"X-Sudden", percented(auth))
	}, secret("KEY", "allowed.example"),
		Bound{sandbox.Secret{Name: "TOKEN", Hosts: []string{"allowed.example"}, Header: "x-token", Format: "{value}"}, "t0ken-of-the-test"})
	for _, two := range []bool{false, true} {
		c := g.client(web, two)
		for _, kind := range []string{"", "identity", "gzip", "x-gzip", "deflate", "raw deflate"} {
			for _, s := range redacttest.Cases(value) {
				if s.Spelling > redact.Percent {
					continue
				}
				how, spelt := s.Name, s.Text
				text <- "begin " + spelt + " end"
				coding <- kind
				status, h, body := g.do(c, "GET", "https://allowed.example/", func(r *http.Request) {
					r.Header.Set("Range", "bytes=3-4")
					r.Header.Set("If-Range", `"x"`)
					r.Header.Set("Accept-Encoding", "br, gzip")
				})
				if want := "begin " + strings.Repeat("*", len(spelt)) + " end"; status != 200 || body != want {
					t.Errorf("%q %s: %d %q, want %q", kind, how, status, body, want)
				}
				stars := strings.Repeat("*", len(value))
				if h.Get("X-Echo") != "Bearer "+stars || h.Get("Trailer:X-Announced") != "" && h.Get("Trailer:X-Announced") != "Bearer "+stars {
					t.Errorf("headers %v", h)
				}
				all := fmt.Sprint(h)
				for _, sign := range []string{"s3cr3t", "0ken", "%73%33", "Alt-Svc", base64.StdEncoding.EncodeToString([]byte(value))[4:12], base64.StdEncoding.EncodeToString([]byte("Bearer " + value))[12:20]} {
					if strings.Contains(all, sign) {
						t.Errorf("%q: headers %v have %s", kind, h, sign)
					}
				}
				if len(h["Trailer:X-Announced"]) != 1 || len(h["Trailer:X-Sudden"]) != 1 {
					t.Errorf("trailers are lost: %v", h)
				}
			}
		}
		for _, kind := range []string{"br", "zstd", "gzip, gzip", "odd"} {
			text <- "whatever"
			coding <- kind
			status, _, body := g.do(c, "GET", "https://allowed.example/")
			if status != 502 || !strings.Contains(body, "encoding") || strings.Contains(body, "whatever") {
				t.Errorf("%s: %d %q", kind, status, body)
			}
		}
	}
	g.noted("tcp", "allowed.example", policy.Encoding)
}

func TestAnswersWithoutABody(t *testing.T) {
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "HEAD":
			w.Header().Set("Content-Encoding", "br")
			w.Header().Set("Content-Length", "77")
		case "PUT":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "0")
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}, secret("KEY", "allowed.example"))
	for _, two := range []bool{false, true} {
		c := g.client(web, two)
		for method, want := range map[string]int{"HEAD": 200, "DELETE": 204, "PUT": 200} {
			status, h, body := g.do(c, method, "https://allowed.example/")
			if status != want || body != "" || method == "HEAD" && h.Get("Content-Length") != "77" {
				t.Errorf("%s: %d %v %q", method, status, h, body)
			}
		}
	}
}

func TestASecretOfAnotherHostIsHiddenToo(t *testing.T) {
	other := secret("OTHER", "other.example")
	other.Value = "value of the other"
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "kept: value of the other")
	}, secret("KEY", "allowed.example"), other)
	if _, _, body := g.do(g.client(web, true), "GET", "https://allowed.example/"); body != "kept: ******************" {
		t.Errorf("%q", body)
	}
}
