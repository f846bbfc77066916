// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"strings"
	"testing"
)

// FuzzReference holds that a name of an image is refused, or leads to one place and no other however it is written down.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"debian", "debian:12-slim", "ghcr.io/a/b:c@sha256:" + strings.Repeat("0", 64), "localhost:5000/a", "[::1]:80/a", "a/../b", "A/b", "index.docker.io/x", "a:b/c", "http://a/b", "a@b@c", "169.254.169.254/a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseReference(s)
		if err != nil {
			return
		}
		for _, written := range []string{r.String(), r.Familiar()} {
			if again, err := ParseReference(written); (err != nil || again != r) && len(written) <= maxReference {
				t.Errorf("%q is %+v, and written as %q %+v (%v)", s, r, written, again, err)
			}
		}
		if strings.ContainsAny(r.Registry, "/@?#\\ ") || strings.Contains(r.Repository, "..") || strings.HasPrefix(r.Repository, "/") {
			t.Errorf("%q asks %q for %q", s, r.Registry, r.Repository)
		}
	})
}

// FuzzChallenge holds that what a registry says of its tokens is read whatever it is.
func FuzzChallenge(f *testing.F) {
	for _, s := range []string{`realm="https://auth.example/token",service="registry"`, `realm=x`, `realm="`, `a="\"b\\",c`, `,,=,`, `realm="a" realm="b"`, "\x00=\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, value := range parameters(s) {
			if len(value) > len(s) {
				t.Errorf("%q has the field %q of %q", s, name, value)
			}
		}
	})
}

// FuzzManifest holds that a manifest and a configuration of another's are refused, or within their bounds.
func FuzzManifest(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0", 64)
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"` + digest + `","size":1},"layers":[{"digest":"` + digest + `","size":-1}]}`))
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"` + digest + `","size":1,"platform":{"architecture":"amd64","os":"linux"}}]}`))
	f.Add([]byte(`{"architecture":"amd64","os":"linux","config":{"Env":["A","=b","C=\u0000"],"Cmd":null,"User":"0:0","WorkingDir":"/proc/self/fd/7"},"rootfs":{"type":"layers","diff_ids":["` + digest + `"]}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseDocument(data)
		for layers := range 3 {
			file, config, err := parseConfig(data, layers, "amd64")
			if err == nil && len(file.RootFS.DiffIDs) != layers {
				t.Errorf("%q: it has %d layers, not %d: %+v", data, len(file.RootFS.DiffIDs), layers, config)
			}
		}
	})
}
