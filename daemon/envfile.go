// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"os"
	"regexp"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ReadEnvFile reads variables from a file of Docker's form, NAME=VALUE a line and # before comments, and returns
// getenv with those that it does not know. Quotes around a value are taken off.
func ReadEnvFile(file string, getenv func(string) string) (func(string) string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the file of variables %s cannot be read", file)
	}
	defer func() { _ = f.Close() }()
	values := make(map[string]string)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok || !variableName.MatchString(name) {
			// Not the line itself: it may hold a secret.
			return nil, fault.New(fault.Invalid, "the file of variables %s, line %d: %q is not NAME=VALUE", file, n, sandbox.Clip(name, 20)).
				WithRemedy("correct the line, or put # before it")
		}
		if l := len(value); l > 1 && value[0] == value[l-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : l-1]
		}
		values[name] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the file of variables %s cannot be read", file)
	}
	return func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return values[name]
	}, nil
}
