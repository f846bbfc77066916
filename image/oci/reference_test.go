// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
)

func TestReferencesAreReadAsDockerReadsThem(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for text, want := range map[string][2]string{
		"debian":                         {"docker.io/library/debian:latest", "debian:latest"},
		"debian:12-slim":                 {"docker.io/library/debian:12-slim", "debian:12-slim"},
		"docker.io/library/debian:12":    {"docker.io/library/debian:12", "debian:12"},
		"index.docker.io/grafana/loki:3": {"docker.io/grafana/loki:3", "grafana/loki:3"},
		"ghcr.io/a/b__c/d-e:V1.0_x":      {"ghcr.io/a/b__c/d-e:V1.0_x", "ghcr.io/a/b__c/d-e:V1.0_x"},
		"localhost/x":                    {"localhost/x:latest", "localhost/x:latest"},
		"localhost:5000/x:y":             {"localhost:5000/x:y", "localhost:5000/x:y"},
		"[::1]:5000/x":                   {"[::1]:5000/x:latest", "[::1]:5000/x:latest"},
		"Example.com/x":                  {"example.com/x:latest", "example.com/x:latest"},
		"x@" + digest:                    {"docker.io/library/x@" + digest, "x@" + digest},
		"q.io/x:y@" + digest:             {"q.io/x:y@" + digest, "q.io/x:y@" + digest},
	} {
		r, err := ParseReference(text)
		if err != nil || r.String() != want[0] || r.Familiar() != want[1] {
			t.Errorf("%s is %s, to people %s (%v); want %v", text, r.String(), r.Familiar(), err, want)
		}
		if again, err := ParseReference(r.String()); err != nil || again != r {
			t.Errorf("%s is read as %+v and then %+v (%v)", text, r, again, err)
		}
	}
	for _, text := range []string{
		"", ":", "/", "a//b", "a/", "/a", "-a", "a-", "A", "a:b:c", "a:", "a:-x", "a@", "a@sha256:12", "a@sha256:" + strings.Repeat("A", 64), "a@md5:" + strings.Repeat("0", 64),
		"../a", "a/../b", "a.io/../b", "a b", "a\n", "a\x00", "http://a/b", "user@host/x", "a.io:port/x", "a.io:1/", strings.Repeat("a", 256), "a:" + strings.Repeat("x", 129), "ä/b", "evil.com\\x/y", "a.io/b?c=d", "a.io/b#c", "a.io/%2e%2e/b", ".a.io/b",
	} {
		if r, err := ParseReference(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q is read as %+v (%v)", text, r, err)
		}
	}
}
