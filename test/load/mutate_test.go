// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// mutator makes requests that are nearly right: of an operation's own parameters and fields, one or some of which
// are what no client should send.
type mutator struct {
	*rand.Rand
	schemas map[string]any // of the document, by name
	box     string         // a sandbox that is there
}

// hostile are texts that parsers and those behind them may take amiss.
var hostile = []string{
	"", " ", "\x00", "a\x00b", "\xff\xfe\xc0\x80", "\u202e\u0000\ufeff", "../../../../etc/passwd", "..", "/", "//", "/proc/self/mem", "/dev/zero", "~", "%00", "%2e%2e%2f",
	"null", "true", "-1", "0", "00", "1e309", "-9223372036854775809", "18446744073709551616", "NaN", "0x10", "1;2", "1,2,,", "a\r\nX-Injected: yes", "\n", "\t", "'", "\"",
	"' OR 1=1 --", "{{.}}", "${IFS}", "$(id)", "%s%n%x", "<script>", "[", "[[[[", "{", "*", "**/*", "[^]", "a{1000000}", "(((((", "\\", "file:///etc/passwd", "http://169.254.169.254/",
	"ext::sh -c id", "--upload-pack=id", "-", "--", "https://[::1", "sha256:zz", "a:b:c@d", "::1", "999.1.1.1/99", "2026-13-45T99:99:99Z", "-1h", "9e99h", "💥💥", strings.Repeat("a", 300),
	strings.Repeat("ä", 5000), strings.Repeat("../", 2000), strings.Repeat("[", 3000), strings.Repeat("9", 400),
}

// usual are texts that are right somewhere.
var usual = []string{"python", "sandbox", "root", "main", "echo hello", "/workspace/a", "a", "1", "5", "json", "running", "off", "base", "1h", "print(1)", "stdout"}

func pick[T any](m *mutator, from []T) T { return from[m.IntN(len(from))] }

// odds reports true that many times of a hundred.
func (m *mutator) odds(n int) bool { return m.IntN(100) < n }

// text is one for a parameter of that name.
func (m *mutator) text(name string) string {
	switch {
	case m.odds(45) && (name == "id" || name == "sandbox" || name == "sandbox_id"):
		return m.box
	case m.odds(40):
		return pick(m, usual)
	case m.odds(15): // any bytes
		b := make([]byte, m.IntN(40))
		for i := range b {
			b[i] = byte(m.Uint32())
		}
		return string(b)
	}
	return pick(m, hostile)
}

// number is one that is right or out of every bound.
func (m *mutator) number() any {
	return pick(m, []any{0, 1, 2, 5, -1, 1.5, 1 << 31, -1 << 63, json.Number("1e308"), json.Number("18446744073709551616"), json.Number("-0"), json.Number("1e-400"), json.Number(strings.Repeat("9", 300))})
}

// value is one for a schema: of its type, or of another.
func (m *mutator) value(schema any, name string, depth int) any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return m.value(m.schemas[ref[strings.LastIndex(ref, "/")+1:]], name, depth)
	}
	if m.odds(7) || depth > 5 {
		return pick(m, []any{nil, true, []any{}, map[string]any{}, []any{nil, map[string]any{"": nil}}, m.number(), m.text(name), nested(200), map[string]any{"__proto__": 1, "a\x00": []any{}}})
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 && m.odds(70) {
		return pick(m, list)
	}
	for _, of := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[of].([]any); ok && len(list) > 0 {
			return m.value(pick(m, list), name, depth+1)
		}
	}
	switch kindOf(m, s["type"]) {
	case "integer", "number":
		return m.number()
	case "boolean":
		return m.odds(50)
	case "array":
		list := []any{}
		for range m.IntN(3) {
			list = append(list, m.value(s["items"], name, depth+1))
		}
		if m.odds(3) {
			list = slices.Repeat([]any{m.value(s["items"], name, depth+1)}, 2000)
		}
		return list
	case "object":
		return m.object(s, depth)
	case "null":
		return nil
	}
	return m.text(name)
}

// kindOf is a type of a schema's, which may have several.
func kindOf(m *mutator, v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = pick(m, list)
	}
	kind, _ := v.(string)
	return kind
}

// object has those fields that must be there, some of the others, and now and then one that there is not.
func (m *mutator) object(s map[string]any, depth int) map[string]any {
	o := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := slices.Contains(required, any(name))
		if must && m.odds(90) || !must && m.odds(25) {
			o[name] = m.value(properties[name], name, depth+1)
		}
	}
	if m.odds(8) {
		o[m.text("")] = m.text("")
	}
	if more := s["additionalProperties"]; more != nil && len(properties) == 0 {
		o[m.text("")] = m.value(more, "", depth+1)
	}
	return o
}

// nested is a list in a list.
func nested(depth int) any {
	v := any("x")
	for range depth {
		v = []any{v}
	}
	return v
}

// encode is JSON that now and then is none.
func (m *mutator) encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		b = []byte(`{"a":` + fmt.Sprintf("%q", fmt.Sprint(v)))
	}
	switch m.IntN(14) {
	case 0:
		b = b[:m.IntN(len(b)+1)]
	case 1:
		b[m.IntN(len(b))] = byte(m.Uint32())
	case 2:
		b = append(b, pick(m, []string{"{}", ",", "\x00", "]", " trailing", "\n\n{}"})...)
	case 3:
		b = slices.Concat([]byte("{\"a\":1,\"a\":2,"), b)
	case 4:
		b = []byte(strings.Repeat("[", 20_000))
	}
	return b
}

// request is the head and the body of one for an operation.
func (m *mutator) request(o route, token string) (head, body []byte) {
	path := o.path
	query := url.Values{}
	for _, p := range o.params {
		switch p.In {
		case "path":
			v := m.text(p.Name)
			escaped := url.PathEscape(v)
			if m.odds(10) { // as it is: what breaks the line of the request, breaks it
				escaped = v
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", escaped)
		case "query":
			if m.odds(35) {
				v := m.value(p.Schema, p.Name, 4)
				if s, ok := v.(string); ok {
					query.Add(p.Name, s)
				} else {
					query.Add(p.Name, fmt.Sprint(v))
				}
			}
		}
	}
	if m.odds(5) {
		query.Add(m.text(""), m.text(""))
	}
	raw := query.Encode()
	if m.odds(4) {
		raw += "&%zz=%&;=" + pick(m, []string{"%", "%u0041", "a;b", "\x7f"})
	}
	method := o.method
	if m.odds(4) {
		method = pick(m, []string{"PATCH", "TRACE", "CONNECT", "OPTIONS", "HEAD", "PROPFIND", "get", "GET\t"})
	}
	target := pick(m, []string{"/v1", "/v1", "/v1", "/api/v1"}) + path
	if raw != "" {
		target += "?" + raw
	}
	media := o.media
	switch {
	case slices.Contains(unsent, o.id):
		body = []byte(pick(m, []string{"", "{", "[]", "\x1f\x8b\x08", "{\"reference\":7}", "null", "{\"a\":}"}))
		if !m.odds(50) { // nor anything that begins what the next test would wait for
			query = url.Values{"wait_seconds": {"-1"}}
		}
	case strings.HasSuffix(media, "json"):
		v := m.value(o.body, "", 0)
		if m.odds(30) && o.example != nil {
			v = o.example
		}
		body = m.encode(v)
	case media != "":
		body = []byte(strings.Repeat(m.text(""), 1+m.IntN(20)))
	case m.odds(10):
		body = m.encode(m.text(""))
	}
	if m.odds(6) {
		media = pick(m, []string{"", "text/plain", "application/json; charset=utf-7", "multipart/form-data; boundary=", "application/x-www-form-urlencoded", "a/b/c", ";;;"})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, target)
	switch {
	case m.odds(96):
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	default:
		fmt.Fprintf(&b, "Authorization: %s\r\n", pick(m, []string{"Bearer", "Bearer ", "Basic Og==", "Bearer " + strings.Repeat("x", 4000), "bearer\t\x80", "Bearer a b", token}))
	}
	if media != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", media)
	}
	length := len(body)
	if m.odds(3) {
		length = pick(m, []int{0, length + 5, max(0, length-1)})
	}
	if len(body) > 0 || m.odds(50) {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	if m.odds(30) {
		fmt.Fprintf(&b, "%s: %s\r\n", pick(m, headers), pick(m, headerValues))
	}
	b.WriteString("Connection: close\r\n\r\n")
	return []byte(b.String()), body
}

// What is read of requests beside their tokens, and what may be there.
var (
	headers = []string{
		"Range", "If-None-Match", "If-Range", "If-Modified-Since", "Idempotency-Key", "Accept", "Accept-Encoding", "Last-Event-ID", "Content-Encoding", "Transfer-Encoding", "Expect", "Origin",
		"Host", "Cookie", "X-Request-ID", "X-Forwarded-For", "Upgrade", "Sec-WebSocket-Key", "Sec-Fetch-Site", "Content-Range", "Content-Disposition", "Mcp-Session-Id", "Mcp-Protocol-Version", "Content-Length",
	}
	headerValues = []string{
		"", "*", "bytes=0-", "bytes=-1", "bytes=5-1", "bytes=0-0,2-3,4-5", "bytes=99999999999999999999-", "a, b;q=2;;", "\"", "W/\"x", "gzip", "chunked", "identity, chunked", "100-continue", "null",
		"https://evil.example", "websocket", "-1", "18446744073709551616", "\x80\xff", "cross-site", "2026-01-01", strings.Repeat("k", 256), strings.Repeat("k", 5000), "text/event-stream", "attachment; filename=../x",
	}
)
