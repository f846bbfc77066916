// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadEnvFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# a comment\n\nPORT=9090\nexport MCP_PATH='/tools'\nLOG_TOOLCALLS=\nTEXT=\"a=b # c\"\r\nOTHER=file\n")
	getenv, err := ReadEnvFile(file, func(name string) string { return map[string]string{"OTHER": "environment"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"PORT": "9090", "MCP_PATH": "/tools", "LOG_TOOLCALLS": "", "TEXT": "a=b # c", "OTHER": "environment", "NONE": ""} {
		if got := getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, bad := range []string{"PORT 9090\n", "9=1\n", "=x\n", "a secret that stands alone by mistake\n"} {
		write("OK=1\n" + bad)
		if _, err := ReadEnvFile(file, os.Getenv); err == nil || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "mistake") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ReadEnvFile(file+".none", os.Getenv); err == nil {
		t.Error("a file that is not there was read")
	}
}
