// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"path/filepath"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/internal/seal"
)

// SecretsConfig configures the keys that seal the values of secrets.
type SecretsConfig struct {
	// KeyFile is a file of keys, each 32 random bytes in base64 or hex on a line of its own: the
	// first seals, all open. Only its owner may write it, and only its owner and its group may
	// read it. "": SecretsKeyFile in the data directory, which is created if it is missing.
	KeyFile string `yaml:"key_file"`
	// Keys are the content of a key file, from the environment alone (SANDPIT_SECRETS_KEY), where
	// a comma also ends a line; then no key file is read. "" if it is not set.
	Keys string `yaml:"-"`
}

// SecretsKeyFile is the file in the data directory that holds the key of secrets if no other is
// configured. Without it their values are lost.
const SecretsKeyFile = "secrets.key"

// openKeys reads the keys of secrets, and creates a key file if none are configured and none
// exists.
func openKeys(cfg Config) (*seal.Ring, error) {
	const remedy = "make a key by: (umask 077; head -c 32 /dev/urandom | base64 >FILE)"
	switch s := cfg.Secrets; {
	case s.Keys != "":
		r, err := seal.Parse(strings.ReplaceAll(s.Keys, ",", "\n"))
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "SANDPIT_SECRETS_KEY: %v", err).WithRemedy("make a key by: head -c 32 /dev/urandom | base64")
		}
		return r, nil
	case s.KeyFile != "":
		r, err := seal.ReadFile(s.KeyFile)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the keys of secrets cannot be read: %v", err).WithRemedy(remedy)
		}
		return r, nil
	}
	r, err := seal.ReadOrMakeFile(filepath.Join(cfg.Data, SecretsKeyFile))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the keys of secrets cannot be read: %v", err).
			WithRemedy("put a copy of the file in its place; without it secrets that were set cannot be opened")
	}
	return r, nil
}
