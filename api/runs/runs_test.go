// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestAnAddressLeadsToItsArtifact(t *testing.T) {
	r := &sandbox.Run{ID: sandbox.NewRunID(), Identifier: "a b?#%"}
	for _, path := range []string{"x", "a/b c.txt", "?q=1", "#f", "%2e%2e/x", "a;b&c=d", "new\nline", "ü", "...", "..x", ""} {
		address := Address(r, path)
		u, err := url.Parse(address)
		if err != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q: %q, %v", path, address, err)
		}
		of, run, file, err := parse(u.EscapedPath())
		if err != nil || of != r.Identifier || run != r.ID || file != path {
			t.Errorf("%q became %q, %q, %q, %v", path, of, run, file, err)
		}
	}
}

func TestWhatIsNoAddressIsNotFound(t *testing.T) {
	for _, escaped := range []string{
		"", "/artifacts", "/artifacts/", "/artifacts/a", "/artifacts//b/c", "/artifacts/a//c", "/artifacts/a/b/../c", "/artifacts/a/b/./c",
		"/artifacts/a/b/%2e%2e/c", "/artifacts/a/b/%2E/c", "/artifacts/a/b/c%2fd", "/artifacts/a/b/c%00", "/artifacts/a/b/%zz", "/artifacts/a/b//c", "/other/a/b/c",
	} {
		if of, run, file, err := parse(escaped); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: got %q, %q, %q, %v", escaped, of, run, file, err)
		}
	}
}

func TestOutputOfAnyBytesIsTold(t *testing.T) {
	r := &sandbox.Run{ID: "r", Commands: []sandbox.RunCommand{{Env: map[string]string{"K": "secret"}}}}
	for text, exact := range map[string]bool{"plain ü": false, "a\xffb": true, "\xc3": true, "": false} {
		ev := &sandbox.RunEvent{Type: sandbox.RunCommandStdout, Data: []byte(text)}
		b, err := json.Marshal(data(r, ev))
		if err != nil {
			t.Fatal(err)
		}
		var got v1.CommandOutput
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if exact != (got.Base64 != nil) || exact && string(got.Base64) != text || !exact && got.Chunk != text {
			t.Errorf("%q became %s", text, b)
		}
	}
	shape, err := json.Marshal(Shape(r, nil, Addresses{}))
	if err != nil || strings.Contains(string(shape), "secret") || !strings.Contains(string(shape), `"K":"(hidden)"`) {
		t.Errorf("got %s, %v", shape, err)
	}
}
