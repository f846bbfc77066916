// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package copying

import "testing"

func TestCopyEndsTellSandboxFromFile(t *testing.T) {
	for arg, want := range map[string]endpoint{
		"web:main.py":   {"web", "main.py"},
		"web:":          {"web", "."},
		"web:/etc/a:b":  {"web", "/etc/a:b"},
		"a:b:/x":        {"a:b", "/x"},
		"web:a:b":       {"web", "a:b"},
		"web:a/b:/c":    {"web", "a/b:/c"},
		"main.py":       {"", "main.py"},
		"./odd:name":    {"", "./odd:name"},
		"/tmp/odd:name": {"", "/tmp/odd:name"},
		"dir/odd:name":  {"", "dir/odd:name"},
		":x":            {"", ":x"},
		"-":             {"", "-"},
		"..":            {"", ".."},
	} {
		if got := parseEnd(arg); got != want {
			t.Errorf("%q is %+v, want %+v", arg, got, want)
		}
	}
}
