// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestVariablesComeFromTheCommandLineFilesAndHere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("\ufeff# mine\n\nA=file\r\n  B=\"quoted\" # kept\nHERE\nE=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"HERE": "there"}[name] }
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	v := EnvFlags(f, getenv, "variable")
	if err := f.Parse([]string{"-e", "A=b=c", "--env-file", file, "--env", "EMPTY="}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "b=c", "B": `"quoted" # kept`, "HERE": "there", "E": "", "EMPTY": ""}
	if got := v.Value(); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := new(Variables).Value(); got != nil {
		t.Errorf("without flags: got %v, want nil", got)
	}
	for text, want := range map[string]string{"export A=1\n": "line 1", "A=1\nGONE\n": "line 2", "=x": "line 1", strings.Repeat("# x\n", 300_000): "bytes"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := f.Set("env-file", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %s", text, err, want)
		}
	}
	for _, s := range []string{"GONE", "", "=x"} {
		if err := f.Set("env", s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}
