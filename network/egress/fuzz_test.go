// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

// FuzzFirstBytes holds that what begins a connection names a host in the form that policies compare, or none, and that
// more bytes never take a name back.
func FuzzFirstBytes(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", "\x16\x03\x01\x40\x00", "\x80\x2e\x01\x00\x02", "SSH-2.0-x\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		what, name := sniff(b)
		if name != "" {
			if normal, ok := sandbox.NormalName(name); !ok || normal != name || what == unclear || what == other || what == malformed {
				t.Errorf("%q is %d and names %q", b, what, name)
			}
			if again, same := sniff(append(b[:len(b):len(b)], strings.Repeat("x", 20)...)); what == speaksTLS && (again != what || same != name) {
				t.Errorf("%q is %d and names %q, and with more behind it %d and %q", b, what, name, again, same)
			}
		}
		if what == unclear && len(b) >= maxFirst {
			t.Errorf("%d bytes are not enough", len(b))
		}
	})
}
