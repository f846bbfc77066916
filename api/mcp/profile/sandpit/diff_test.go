// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestUnified holds diffs against patch(1), which makes of the old text the new one.
func TestUnified(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("this host has no patch")
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 1, 120, -1).Draw(t, "content")
		before := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 1, 4, -1).Draw(t, "before")
		after := rapid.StringOfN(rapid.SampledFrom([]rune("xy\na")), 0, 6, -1).Draw(t, "after")
		at := places(content, before)
		if len(at) == 0 || before == after {
			return
		}
		if !rapid.Bool().Draw(t, "all") {
			at = at[:1]
		}
		want := strings.Replace(content, before, after, len(at))
		diff := unified(content, before, after, at)
		if want == content {
			if diff != "" {
				t.Fatalf("nothing changes, and the diff is %q", diff)
			}
			return
		}
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("patch", "--fuzz=0", "--silent", file)
		cmd.Stdin = strings.NewReader("--- f\n+++ f\n" + diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("patch: %v\n%s\nof %q:\n%s", err, out, content, diff)
		}
		got, err := os.ReadFile(file)
		if os.IsNotExist(err) { // patch removes what is empty
			got = nil
		} else if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Fatalf("of %q the diff makes %q, want %q:\n%s", content, got, want, diff)
		}
	})
}

func TestNearestLinesIsBounded(t *testing.T) {
	wide := strings.Repeat("x", 1<<20)
	for _, c := range []struct{ content, what string }{
		{"", "x"}, {"x", ""}, {"\n\n\n", "\n\n"}, {wide, wide + "y"}, {strings.Repeat("a\n", 1<<20), strings.Repeat("b\n", 1<<20)},
		{strings.Repeat("abcdefgh\n", 100_000), strings.Repeat("abcdefgi\n", 1000)},
	} {
		if n := nearestLines(c.content, c.what); n != nil && len(n.diff) > 2*(nearShown+1)*(nearWide*4+4) {
			t.Errorf("the difference has %d bytes", len(n.diff))
		}
	}
}
