// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
)

func TestTheKeysOfSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "elsewhere")
	first, second := seal.Generate(), seal.Generate()
	if err := os.WriteFile(file, []byte(first+"\n"+second+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := func(key string) string {
		r, err := seal.Parse(key)
		if err != nil {
			t.Fatal(err)
		}
		return r.KeyID()
	}
	with := func(s SecretsConfig) Config { return Config{Data: dir, Secrets: s} }

	if r, err := openKeys(with(SecretsConfig{KeyFile: file})); err != nil || r.KeyID() != id(first) {
		t.Errorf("from a file: %v", err)
	}
	if r, err := openKeys(with(SecretsConfig{Keys: second + "," + first})); err != nil || r.KeyID() != id(second) {
		t.Errorf("from the environment: %v", err)
	}
	if r, err := openKeys(with(SecretsConfig{Keys: second, KeyFile: file})); err != nil || r.KeyID() != id(second) {
		t.Errorf("from both: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, SecretsKeyFile)); !os.IsNotExist(err) {
		t.Errorf("a key was made that nobody needs: %v", err)
	}
	made, err := openKeys(with(SecretsConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, SecretsKeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key that was made has mode %v, %v", info.Mode(), err)
	}
	if again, err := openKeys(with(SecretsConfig{})); err != nil || again.KeyID() != made.KeyID() {
		t.Errorf("a second time: %v", err)
	}

	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("not-a-key-but-private"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]SecretsConfig{
		"a file that is not there": {KeyFile: filepath.Join(dir, "none")}, "a file without a key": {KeyFile: bad},
		"words in the environment": {Keys: "not-a-key-but-private"},
	} {
		_, err := openKeys(with(s))
		if !fault.Is(err, fault.Invalid) || fault.As(err).Remedy == "" || strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a file that was named and missing was made: %v", err)
	}
}

func TestTheKeysOfSecretsAreConfigured(t *testing.T) {
	c := DefaultConfig()
	env := map[string]string{"SANDPIT_SECRETS_KEY": "k", "SANDPIT_SECRETS_KEY_FILE": "keys"}
	if err := c.ReadEnv(func(n string) string { return env[n] }); err != nil || c.Secrets.Keys != "k" || c.Secrets.KeyFile != "keys" {
		t.Fatalf("from the environment: %+v, %v", c.Secrets, err)
	}
	if err := c.Check(); err != nil || !filepath.IsAbs(c.Secrets.KeyFile) {
		t.Errorf("checked: %+v, %v", c.Secrets, err)
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("secrets: {key_file: /etc/keys}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = DefaultConfig()
	if err := c.ReadFile(file); err != nil || c.Secrets.KeyFile != "/etc/keys" {
		t.Errorf("from a file: %+v, %v", c.Secrets, err)
	}
	if err := os.WriteFile(file, []byte("secrets: {keys: x}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.ReadFile(file); err == nil {
		t.Error("keys are taken from the configuration's file, which is not kept as secret as a key")
	}
}
