// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/redact"
)

var update = flag.Bool("update", false, "draw the table in docs/secrets.md")

const (
	page     = "../docs/secrets.md"
	begin    = "<!-- redact: go test ./redact -update -->\n"
	tableEnd = "<!-- /redact -->\n"
)

func TestTheTableIsDrawnAsItIs(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + begin + drawn() + tableEnd + after
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not that of the code: draw it with go test ./redact -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// drawn returns the table as Markdown.
func drawn() string {
	var b strings.Builder
	b.WriteString("\n| the value")
	for _, p := range redact.Places() {
		fmt.Fprintf(&b, " | %s", p)
	}
	b.WriteString(" |\n| ---" + strings.Repeat(" | :-:", len(redact.Places())) + " |\n")
	var reasons []string
	for _, s := range redact.Spellings() {
		fmt.Fprintf(&b, "| %s", s)
		for _, p := range redact.Places() {
			masked, why := p.Masks(s)
			if masked {
				b.WriteString(" | yes")
				continue
			}
			n := slices.Index(reasons, why)
			if n < 0 {
				n = len(reasons)
				reasons = append(reasons, why)
			}
			fmt.Fprintf(&b, " | no (%d)", n+1)
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\n")
	for n, why := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", n+1, why)
	}
	b.WriteString("\n")
	return b.String()
}
