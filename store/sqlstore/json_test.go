// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sandpit.dev/sandbox"
)

// anyText draws texts of any bytes, with the dangerous ones often among them.
func anyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{`"`, `\`, `":"`, `","`, `{`, `}`, "\x00", "\xff", "\xed\xb2\x80", `\u0022`, "\ufffd", "k", "v", ""}),
			rapid.String(),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
		), 0, 4).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func TestJSON(t *testing.T) {
	labels := rapid.MapOfN(anyText(), anyText(), 0, 4)
	t.Run("WhatIsReadEqualsWhatWasWritten", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := labels.Draw(t, "labels")
			got, err := parseLabels(labelsText(m))
			if err != nil || !maps.Equal(got, m) {
				t.Errorf("got %q, %v, want %q", got, err, m)
			}
			changes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sandbox.FileChange {
				return sandbox.FileChange{Path: anyText().Draw(t, "path"), Action: anyText().Draw(t, "action"), Size: rapid.Int64().Draw(t, "size")}
			}), 0, 4).Draw(t, "changes")
			back, err := parseChanges(changesText(changes))
			if err != nil || !slices.Equal(back, changes) {
				t.Errorf("got %v, %v, want %v", back, err, changes)
			}
			mounts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sandbox.Mount {
				text := func(name string) string { return anyText().Draw(t, name) }
				return sandbox.Mount{
					Volume: sandbox.ID(text("volume")), Name: text("name"), Path: text("path"), Sub: text("sub"), ReadOnly: rapid.Bool().Draw(t, "read only"),
				}
			}), 0, 4).Draw(t, "mounts")
			mounted, err := parseMounts(mountsText(mounts))
			if err != nil || !slices.Equal(mounted, mounts) {
				t.Errorf("got %v, %v, want %v", mounted, err, mounts)
			}
		})
	})
	t.Run("AnObjectContainsTheTextOfItsMembersOnly", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := labels.Draw(t, "labels")
			text := labelsText(m)
			for name, value := range m {
				if !strings.Contains(text, labelText(name, value)) {
					t.Errorf("%s does not contain %s", text, labelText(name, value))
				}
			}
			name, value := anyText().Draw(t, "name"), anyText().Draw(t, "value")
			had, ok := m[name]
			if want := ok && had == value; strings.Contains(text, labelText(name, value)) != want {
				t.Errorf("%s contains %s: got %v, want %v", text, labelText(name, value), !want, want)
			}
		})
	})
	t.Run("OthersCanReadIt", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			m := labels.Draw(t, "labels")
			var got map[string]string
			if err := json.Unmarshal([]byte(labelsText(m)), &got); err != nil {
				t.Fatalf("%s: %v", labelsText(m), err)
			}
			same := map[string]bool{} // names that others become, of which each byte that is no text is replaced
			for name := range m {
				if !utf8.ValidString(name) {
					same[string([]rune(name))] = true
				}
			}
			for name, value := range m {
				if utf8.ValidString(name) && !same[name] && utf8.ValidString(value) && got[name] != value {
					t.Errorf("%q: got %q, want %q", name, got[name], value)
				}
			}
		})
	})
	t.Run("WhatIsBrokenIsAnError", func(t *testing.T) {
		for _, text := range []string{"", "{", `{"a"`, `{"a":`, `{"a":"b`, `{"a":"b"`, `{"a":"\`, `{"a":"\u00"}`, `{"a":"\uzzzz"}`, "null", "[]", `{"a":1}`} {
			if m, err := parseLabels(text); err == nil {
				t.Errorf("%s: got %q, want an error", text, m)
			}
		}
		for _, text := range []string{"", "[", "[[", `[["a"`, `[["a","b"]]`, `[["a","b",]]`, `[["a","b",1]`, `[["a","b",99999999999999999999]]`, "{}"} {
			if c, err := parseChanges(text); err == nil {
				t.Errorf("%s: got %v, want an error", text, c)
			}
		}
		for _, text := range []string{"", "[", "[[", `[["a"`, `[["a","b","c","d"]]`, `[["a","b","c","d",]]`, `[["a","b","c",1]]`, `[["a","b","c","d",1]`, "{}"} {
			if m, err := parseMounts(text); err == nil {
				t.Errorf("%s: got %v, want an error", text, m)
			}
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{kind: cursorSandboxes, project: "p", number: 1, name: "box"}.String())
	f.Add(cursor{kind: cursorEvents, project: "p", oldest: true, number: -1}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []byte{cursorSandboxes, cursorEvents, cursorSnapshots} {
			for _, oldest := range []bool{true, false} {
				// What is taken is what we would have given.
				if c, err := parseCursor(text, kind, "p", oldest); err == nil && c.String() != text {
					t.Errorf("%q was read as %+v, which is %q", text, c, c.String())
				}
			}
		}
	})
}
