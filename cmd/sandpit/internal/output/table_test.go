// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestATableFitsTheTerminal(t *testing.T) {
	head := func() []string { return []string{"ID", "STATUS", "IMAGE", "COMMAND"} }
	rows := func() [][]string {
		return [][]string{
			{"w5ao0wnmehpbxz76", "running", "an-image-with-a-long-name", "sh -c 'für immer und ewig; sleep 1000; echo done'"},
			{"uq38cggupc8mb0ar", "running", "python", "true"},
		}
	}
	const narrow = `
ID                 STATUS    IMAGE              COMMAND
w5ao0wnmehpbxz76   running   an-image-with-a…   sh -c 'für imme…
uq38cggupc8mb0ar   running   python             true
`
	for _, c := range []struct {
		columns int
		want    string
	}{
		{0, `
ID                 STATUS    IMAGE                       COMMAND
w5ao0wnmehpbxz76   running   an-image-with-a-long-name   sh -c 'für immer und ewig; sleep 1000; echo done'
uq38cggupc8mb0ar   running   python                      true
`},
		{80, `
ID                 STATUS    IMAGE                      COMMAND
w5ao0wnmehpbxz76   running   an-image-with-a-long-na…   sh -c 'für immer und ew…
uq38cggupc8mb0ar   running   python                     true
`},
		{64, narrow}, {10, narrow},
	} {
		var b strings.Builder
		if err := TableWithin(&b, head(), rows(), c.columns); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), c.want[1:]; got != want {
			t.Errorf("%d columns: got\n%swant\n%s", c.columns, got, want)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); c.columns >= 64 && n > c.columns {
				t.Errorf("%d columns: a line has %d", c.columns, n)
			}
		}
	}
}
