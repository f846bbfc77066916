// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"testing"

	"sandpit.dev/sandbox"
)

// FuzzSettings holds that whatever the files of an image say of registries, names of hosts alone come out.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"registry=https://u:p@host.test/x\n@a:registry='http://b'\n", "[global]\nindex-url = http://a/\n  http://b/\nextra-index-url: ftp://c\n[install]\n=x\n", "[", "registry=*.org", "registry=http://10.0.0.1/", "=\n:\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		registry, scoped := npmSettings(text)
		said := append(scoped, registry)
		for _, v := range pipSettings(text) {
			said = append(said, v)
		}
		for _, h := range hosts(said...) {
			if normal, ok := sandbox.NormalName(h); !ok || normal != h {
				t.Errorf("%q lets the host %q through", text, h)
			}
		}
	})
}
