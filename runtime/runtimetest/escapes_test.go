// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named is a group of the suite as docs/escapes.md has it, and a test of a package.
var (
	named    = regexp.MustCompile(`Isolation/([A-Za-z]+)`)
	namedOne = regexp.MustCompile(`\bTest[A-Z][A-Za-z]{8,}`)
)

// The page of known escapes names no group and no test that there is not.
func TestThePageOfEscapesNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/escapes.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var suite strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		suite.Write(b)
	}
	groups := named.FindAllStringSubmatch(string(page), -1)
	if len(groups) < 30 {
		t.Fatalf("the page names %d groups", len(groups))
	}
	for _, g := range groups {
		if !strings.Contains(suite.String(), `"`+g[1]+`"`) {
			t.Errorf("there is no group %s", g[0])
		}
	}
	for _, name := range namedOne.FindAllString(string(page), -1) {
		found := false
		for _, pattern := range []string{"../../runtime/native/*_test.go", "../../build/*_test.go", "../../test/load/*_test.go"} {
			tests, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range tests {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				found = found || strings.Contains(string(b), "func "+name+"(")
			}
		}
		if !found {
			t.Errorf("there is no test %s", name)
		}
	}
}
