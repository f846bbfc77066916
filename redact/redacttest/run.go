// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redacttest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sandpit.dev/redact"
)

// Values returns the values that Run tries at a place. They are to be secrets there.
func Values(p redact.Place) []string {
	all := []string{
		"opensesame/1234+key",
		`p'a"ss\ w<ö>&$x/y=%41;z`,
		"A-long-value/of.a+key_0 that Takes more_than ONE-line:9f86d081884c7d659a2feaa0c55ad015",
	}
	if p != redact.Echo {
		all = append(all, "-----BEGIN KEY-----\nMIIEvQ'\"\\<ü>\n-----END KEY-----\n")
	}
	return all
}

// label is what stands for a value whose name is told.
var label = regexp.MustCompile(`\[secret [A-Z_0-9]+\]`)

// Run has each spelling of the place's values come out there, and compares what came with
// the table. Show returns a text as it comes out at the place, and false where no such text
// can come there.
func Run(t *testing.T, p redact.Place, show func(t *testing.T, text string) (string, bool)) {
	t.Helper()
	const before, after = "<begin> [", "] <end>"
	tried := map[redact.Spelling]bool{}
	leaked := map[redact.Spelling]string{}
	for _, value := range Values(p) {
		for _, c := range Cases(value) {
			got, ok := show(t, before+c.Text+after)
			if !ok {
				continue
			}
			tried[c.Spelling] = true
			if wrong := c.Check(before, got, after); wrong != "" {
				leaked[c.Spelling] = fmt.Sprintf("%q, %s: %s", value, c.Name, wrong)
			}
		}
	}
	for _, s := range redact.Spellings() {
		masked, why := p.Masks(s)
		switch how, leaks := leaked[s]; {
		case masked && leaks:
			t.Errorf("%s does not mask a value %s: %s", p, s, how)
		case !masked && tried[s] && !leaks:
			t.Errorf("%s masks a value %s, and the table says that it does not: %s", p, s, why)
		case masked && !tried[s]:
			t.Errorf("no value came to %s %s", p, s)
		}
	}
}

// Check returns what is wrong with a text in which the case stood between two others; ""
// for nothing.
func (c Case) Check(before, got, after string) string {
	inner, begins := strings.CutPrefix(got, before)
	inner, ends := strings.CutSuffix(inner, after)
	if !begins || !ends {
		return fmt.Sprintf("what stands beside it is changed: %q", got)
	}
	if rest := strings.ReplaceAll(label.ReplaceAllString(inner, ""), "*", ""); len(rest) > c.Edge {
		return fmt.Sprintf("%d bytes are left of %q: %q", len(rest), c.Text, inner)
	}
	return ""
}
