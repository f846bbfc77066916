// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheHostsArchiveIsUsedForOtherSuites(t *testing.T) {
	const deb822 = `# a comment
Types: deb
URIs: https://mirror.example/third-party
Suites: bookworm
Components: stable
Signed-By: /etc/other.gpg

Enabled: no
Types: deb
URIs: https://off.example/debian
Suites: bookworm
Components: main

Types: deb deb-src
URIs: https://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /etc/debian.gpg
`
	for name, c := range map[string]struct {
		file, text string
		want       Archive
	}{
		"Deb822":         {"sources.list.d/debian.sources", deb822, Archive{"https://mirror.example/debian", "/etc/debian.gpg"}},
		"OneLine":        {"sources.list", "# deb x\ndeb https://mirror.example/debian bookworm main # a word\n", Archive{"https://mirror.example/debian", keyring}},
		"WithOptions":    {"sources.list.d/x.list", "deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian bookworm main contrib\n", Archive{"https://mirror.example/debian", "/k.gpg"}},
		"AnotherRelease": {"sources.list", "deb https://mirror.example/debian sid main\n", Archive{}},
		"OnlySources":    {"sources.list", "deb-src https://mirror.example/debian bookworm main\n", Archive{}},
	} {
		t.Run(name, func(t *testing.T) {
			etc := t.TempDir()
			if err := os.MkdirAll(filepath.Join(etc, "sources.list.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(etc, c.file), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := findArchive(etc, "bookworm")
			if got != c.want || (err == nil) != (c.want != Archive{}) {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	got := Archive{"https://mirror.example/debian", "/k.gpg"}.Source("trixie-backports")
	for _, want := range []string{"URIs: https://mirror.example/debian\n", "Suites: trixie-backports\n", "Signed-By: /k.gpg\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
}
