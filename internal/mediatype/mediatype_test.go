// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mediatype_test

import (
	"testing"

	"sandpit.dev/internal/mediatype"
)

func TestWhatMayHoldScriptsIsNotShown(t *testing.T) {
	for _, name := range []string{"x.html", "x.HTM", "x.svg", "x.xhtml", "x.xml", "x.js", "x.pdf", "x", "x.unknown", ".html", "png"} {
		if kind, inline := mediatype.Of(name); inline {
			t.Errorf("%s is shown, as %s", name, kind)
		}
	}
	for _, name := range []string{"x.txt", "x.PNG", "x.json", "a/b.log"} {
		if _, inline := mediatype.Of(name); !inline {
			t.Errorf("%s is not shown", name)
		}
	}
}
