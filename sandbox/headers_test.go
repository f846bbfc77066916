// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestHeadersOfAPolicy(t *testing.T) {
	p, err := sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: sandbox.HostHeaders{
		"API.example.com.": {"X-Org": "acme", "x-text": "a\tb é"}, "*.example.org": {"User-Agent": "agent/1"}, "none.example": {},
	}}.Normal()
	want := sandbox.HostHeaders{"api.example.com": {"x-org": "acme", "x-text": "a\tb é"}, "*.example.org": {"user-agent": "agent/1"}}
	if err != nil || !p.Headers.Equal(want) {
		t.Errorf("got %v, %v", p.Headers, err)
	}
	one := func(name, value string) sandbox.HostHeaders { return sandbox.HostHeaders{"a.example": {name: value}} }
	many, hosts, long := make(map[string]string), make(sandbox.HostHeaders), make(sandbox.HostHeaders)
	for i := range 33 {
		if i < 17 {
			many[fmt.Sprint("x-", i)] = "v"
			long[fmt.Sprintf("h%d.example", i)] = map[string]string{"x": strings.Repeat("v", 1024)}
		}
		hosts[fmt.Sprintf("h%d.example", i)] = map[string]string{"x": "y"}
	}
	for name, h := range map[string]sandbox.HostHeaders{
		"a line end": one("x-a", "b\r\nHost: other"), "a newline": one("x-a", "b\nc"), "a return": one("x-a", "b\rc"), "a zero byte": one("x-a", "b\x00c"), "an escape": one("x-a", "\x1b[1m"), "delete": one("x-a", "\x7f"),
		"space around": one("x-a", " b"), "a long value": one("x-a", strings.Repeat("v", 1025)),
		"no name": one("", "b"), "a colon": one("x:a", "b"), "a space": one("x a", "b"), "a line end in a name": one("x\r\ny", "b"), "no ASCII": one("xé", "b"), "a long name": one(strings.Repeat("x", 129), "b"), "HTTP/2's": one(":authority", "b"),
		"host": one("Host", "b"), "length": one("Content-Length", "1"), "another spelling": one("Content_Length", "1"), "transfer": one("transfer-encoding", "chunked"), "connection": one("Connection", "x-a"), "upgrade": one("upgrade", "h2c"),
		"te": one("TE", "trailers"), "trailer": one("trailer", "x"), "keep-alive": one("keep-alive", "1"), "proxy": one("Proxy-Authenticate", "x"), "expect": one("expect", "100-continue"), "sec": one("Sec-WebSocket-Key", "x"), "range": one("range", "bytes=1-"),
		"encoding": one("accept-encoding", "br"), "a credential": one("Authorization", "Bearer x"), "a cookie": one("cookie", "a=b"),
		"twice":     {"a.example": {"X-A": "1", "x_a": "2"}},
		"two hosts": {"a.example": {"x": "1"}, "A.example": {"x": "2"}},
		"no host":   {"": {"x": "1"}}, "an address": {"192.0.2.1": {"x": "1"}}, "a port": {"a.example:80": {"x": "1"}}, "all": {"*": {"x": "1"}},
		"many": {"a.example": many}, "many hosts": hosts, "much": long,
	} {
		if _, err := (sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen, Headers: h}).Normal(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "headers") || len(err.Error()) > 400 {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := (sandbox.NetworkPolicy{Mode: sandbox.NetworkOff, Headers: want}).Normal(); !fault.Is(err, fault.Invalid) {
		t.Errorf("in mode off: got %v", err)
	}
}
