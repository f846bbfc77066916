// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"sandpit.dev/internal/printable"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "plain": "plain", "ä b\n": "ä b\n", `back\slash`: `back\slash`, // text is as it is
		"\xff": `\xff`, "a\x80ä": `a\x80ä`, "\\\xc3": `\\\xc3`, "\xed\xa0\x80": `\xed\xa0\x80`,
	} {
		got, escaped := printable.Name(name)
		if got != want || escaped == utf8.ValidString(name) {
			t.Errorf("%q is written %q, %v, want %q", name, got, escaped, want)
		}
	}
}

// What is escaped is text, and the same bytes when it is read back.
func FuzzEscape(f *testing.F) {
	for _, name := range []string{"a", `\`, "\xff\\", "\"\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text := printable.Escape(name)
		if !utf8.ValidString(text) {
			t.Fatalf("%q became %q", name, text)
		}
		var back strings.Builder
		for rest := text; rest != ""; {
			if rest[0] != '\\' {
				back.WriteByte(rest[0])
				rest = rest[1:]
				continue
			}
			if strings.HasPrefix(rest, `\\`) {
				back.WriteByte('\\')
				rest = rest[2:]
				continue
			}
			n, err := strconv.ParseUint(rest[2:4], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			back.WriteByte(byte(n))
			rest = rest[4:]
		}
		if back.String() != name {
			t.Errorf("%q became %q, and that %q", name, text, back.String())
		}
	})
}
