// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAptSources(t *testing.T) {
	mirrors := filepath.Join(t.TempDir(), "mirrors")
	if err := os.WriteFile(mirrors, []byte("# ours\nhttps://one.test/debian\tpriority:1\nhttp://two.test/debian\nfile:/media\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for title, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"Deb822IsReducedToTheSuite": {
			map[string]string{"sources.list.d/debian.sources": "# a comment\nTypes: deb deb-src\nURIs: http://mirror.test/debian\n# inside\nSuites: bookworm bookworm-updates bookworm-backports\nComponents: main contrib\nSigned-By: /usr/share/keyrings/k.gpg\n\nTypes: deb\nURIs: http://mirror.test/security\nSuites: bookworm-security\nComponents: main\n"},
			"Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/k.gpg\n\nTypes: deb\nURIs: http://mirror.test/security\nSuites: bookworm-security\nComponents: main\n\n",
		},
		"OneLineIsRead": {
			map[string]string{"sources.list": "deb [arch=amd64 signed-by=/k.gpg] https://m.test/d bookworm main non-free # why\ndeb-src https://m.test/d bookworm main\n"},
			"Types: deb\nURIs: https://m.test/d\nSuites: bookworm\nComponents: main\nArchitectures: amd64\nSigned-By: /k.gpg\n\n",
		},
		"WhatTheHostTrustsUnsignedIsNotTrustedHere": {
			map[string]string{
				"sources.list":             "deb [trusted=yes arch=amd64] http://one.test bookworm main\n",
				"sources.list.d/t.sources": "Types: deb\nURIs: http://two.test\nSuites: bookworm\nComponents: main\nTrusted: yes\nAllow-Insecure: yes\nallow-weak: yes\n",
			},
			"Types: deb\nURIs: http://one.test\nSuites: bookworm\nComponents: main\nArchitectures: amd64\n\nTypes: deb\nURIs: http://two.test\nSuites: bookworm\nComponents: main\n\n",
		},
		"ThirdPartiesAreLeftOut": {
			map[string]string{
				"sources.list":                  "deb http://m.test/d bookworm main\n",
				"sources.list.d/other.list":     "deb http://other.test bookworm stable\ndeb http://pg.test bookworm-pgdg main\n",
				"sources.list.d/off.sources":    "Enabled: no\nTypes: deb\nURIs: http://off.test\nSuites: bookworm\nComponents: main\n",
				"sources.list.d/flat.sources":   "Types: deb\nURIs: http://flat.test\nSuites: ./\n",
				"sources.list.d/broken.sources": "no field here\n continued\n\n\n:\n",
				"sources.list.d/broken.list":    "deb [ unclosed\ndeb\ndeb x\n",
			},
			"Types: deb\nURIs: http://m.test/d\nSuites: bookworm\nComponents: main\n\n",
		},
		"AnEmbeddedKeyIsKept": {
			map[string]string{"sources.list.d/k.sources": "Types: deb\nURIs: http://m.test\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN-----\n .\n abc\n"},
			"Types: deb\nURIs: http://m.test\nSuites: bookworm\nComponents: main\nSigned-By: \n -----BEGIN-----\n .\n abc\n\n",
		},
		"AListOfMirrorsIsReadHere": {
			map[string]string{"sources.list": "deb mirror+file:" + mirrors + " bookworm main\n"},
			"Types: deb\nURIs: https://one.test/debian http://two.test/debian\nSuites: bookworm\nComponents: main\n\n",
		},
		"TheHostsOwnDiskIsNoSource": {
			map[string]string{"sources.list": "deb file:/media/cd bookworm main\ndeb cdrom:[Debian]/ bookworm main\n"},
			"",
		},
		"AnotherReleaseIsNone": {
			map[string]string{"sources.list": "deb http://m.test trixie main\ndeb http://m.test bookworm-security main\n"},
			"",
		},
		"NoConfigurationIsNone": {nil, ""},
	} {
		t.Run(title, func(t *testing.T) {
			etc := t.TempDir()
			if err := os.Mkdir(filepath.Join(etc, "sources.list.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range tc.files {
				if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, aptSources(etc, "bookworm")); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}
