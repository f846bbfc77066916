// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// jsonEscaped writes all of s as JSON may.
func jsonEscaped(s string) string {
	out := ""
	for i := range len(s) {
		out += fmt.Sprintf(`\u%04X`, s[i])
	}
	return out
}

func percented(s string) string {
	out := ""
	for i := range len(s) {
		out += fmt.Sprintf("%%%02X", s[i])
	}
	return out
}

// honest are ways in which an honest server sends back a value.
func honest(value string) map[string]string {
	quoted, _ := json.Marshal(value)
	return map[string]string{
		"itself": value, "JSON": strings.Trim(string(quoted), `"`), "JSON with slashes": strings.ReplaceAll(strings.Trim(string(quoted), `"`), "/", `\/`),
		"all of JSON": jsonEscaped(value), "query": url.QueryEscape(value), "path": url.PathEscape(value), "all of percent": percented(value),
		"lower percent": strings.ToLower(percented(value[:1])) + value[1:], "HTML": html.EscapeString(value), "both": percented(value[:3]) + jsonEscaped(value[3:]),
		"base64 in JSON": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(value))[:len(value)/3*4], "/", `\/`),
	}
}

func TestValuesAreHidden(t *testing.T) {
	for _, value := range []string{value, `quo"te\and<&>%41 'x'`, "%%%%25%%", "aaaaaaab", "sk-ünïcode-key", "abcd"} {
		v := newVeil([]string{value})
		for how, text := range honest(value) {
			if (how == "all of JSON" || how == "both") && strings.Contains(value, "ü") || how == "base64 in JSON" && len(value) < 6 {
				continue
			}
			for _, around := range [][2]string{{"", ""}, {"<", ">"}, {value[:3], value[:2]}, {"%", "%"}, {`\`, "&"}} {
				whole := around[0] + text + around[1]
				want := strings.Repeat("*", len(text))
				got := v.text(whole)
				if len(got) != len(whole) || !strings.Contains(got, want) {
					t.Errorf("%q %s in %q: %q", value, how, around, got)
				}
				for split := 1; split < len(whole); split++ {
					m := masker{veil: v}
					parts := string(m.push([]byte(whole[:split])))
					parts += string(m.push([]byte(whole[split:])))
					if parts += string(m.rest()); parts != got {
						t.Fatalf("%q %s in %q divided at %d: %q, not %q", value, how, around, split, parts, got)
					}
				}
			}
		}
	}
}

func TestBase64OfMoreIsHidden(t *testing.T) {
	v := newVeil([]string{value})
	for before := range 5 {
		for after := range 5 {
			plain := strings.Repeat("b", before) + value + strings.Repeat("a", after)
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				text := e.EncodeToString([]byte(plain))
				got := v.text(text)
				// All but the characters that other bytes have a part in.
				if n := strings.Count(got, "*"); len(got) != len(text) || n < len(value)*8/6-2 {
					t.Errorf("%d before, %d after: %q of %q", before, after, got, text)
				}
				b, _ := e.DecodeString(strings.ReplaceAll(got, "*", "A"))
				if bytes.Contains(b, []byte(value[2:len(value)-2])) {
					t.Errorf("decodes to %q", b)
				}
			}
		}
	}
}

func TestOnlyValuesAreHidden(t *testing.T) {
	v := newVeil([]string{value, "abcdefgh", "abcdefgh and more of it"})
	for text, want := range map[string]string{
		"":                                      "",
		value[:7]:                               value[:7],
		"abcd efgh %61%62 \\u0061 &#97; &amp; ": "abcd efgh %61%62 \\u0061 &#97; &amp; ",
		"abcdefgh and less":                     "*************less", // the first half of the other, too
		"abcdefgh and more of it!":              "***********************!",
		"xabcdefghabcdefgh!":                    "x****************!",
		"truncated: " + value[:len(value)-2]:    "truncated: " + strings.Repeat("*", len(value)-2),
	} {
		if got := v.text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	none := newVeil(nil)
	if got := none.text("anything %41"); got != "anything %41" {
		t.Errorf("without values: %q", got)
	}
	same := newVeil([]string{value, value})
	if got := same.text(value); got != strings.Repeat("*", len(value)) {
		t.Errorf("the same value twice: %q", got)
	}
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	m := masker{veil: v}
	got := append([]byte(nil), m.push(random)...)
	if got = append(got, m.rest()...); !bytes.Equal(got, random) {
		t.Error("bytes that are no value are changed")
	}
}

func FuzzTheMaskerIsTheSameHoweverDivided(f *testing.F) {
	f.Add([]byte("x"+value+"y"+percented(value)), uint8(3))
	f.Add([]byte(value[:9]+value+value[:3]+jsonEscaped(value)[:20]), uint8(1))
	v := newVeil([]string{value, "s3cr3t", "%%%%"})
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		m := masker{veil: v, held: append([]byte(nil), b...)}
		whole := string(m.rest())
		n := masker{veil: v}
		parts := ""
		for rest := b; len(rest) > 0; {
			k := min(len(rest), int(step)+1)
			parts += string(n.push(rest[:k]))
			rest = rest[k:]
		}
		parts += string(n.rest())
		if parts != whole || len(whole) != len(b) || strings.Contains(whole, value) {
			t.Errorf("%q: %q and %q", b, whole, parts)
		}
	})
}

// pipeBody is a body that is written bit by bit.
func pipeBody(v *veil) (*veiled, *io.PipeWriter) {
	r, w := io.Pipe()
	return v.body(r, r, nil), w
}

func TestShortBeginningsComeSoon(t *testing.T) {
	v := newVeil([]string{value})
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
	_, _ = io.WriteString(w, value[:sure])
	select {
	case s := <-read:
		t.Errorf("what is likely a value is let go: %q", s)
	case <-time.After(3 * quiet):
	}
	_, _ = io.WriteString(w, "?")
	get(value[:sure] + "?")
	_ = w.Close()
	if s := <-read; s != "" {
		t.Errorf("after the end: %q", s)
	}
}

func TestABodyThatFailsGivesNothingThatWasKeptBack(t *testing.T) {
	v := newVeil([]string{value})
	odd := errors.New("odd")
	from := io.MultiReader(strings.NewReader("x"+value[:5]), iotest.ErrReader(odd))
	b, err := io.ReadAll(v.body(from, io.NopCloser(nil), nil))
	if string(b) != "x" || !errors.Is(err, odd) {
		t.Errorf("%q, %v", b, err)
	}
}

func TestClosingABodyEndsItsRead(t *testing.T) {
	body, w := pipeBody(newVeil([]string{value}))
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
			for how, spelt := range honest(value) {
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
