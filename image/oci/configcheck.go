// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// CheckConfig refuses a config that is beyond the bounds of images: fault.Invalid.
func CheckConfig(c Config) error {
	bytes, text := 0, len(c.User)+len(c.WorkingDir)
	for _, kv := range c.Env {
		bytes += len(kv) + 1
		if strings.ContainsRune(kv, 0) {
			return fault.New(fault.Invalid, "%s in the image's environment has a zero byte", shown(kv))
		}
	}
	for name, value := range c.Labels {
		text += len(name) + len(value)
	}
	for _, w := range slices.Concat(c.Entrypoint, c.Cmd, c.Ports) {
		text += len(w)
	}
	words := len(c.Entrypoint) + len(c.Cmd)
	switch {
	case len(c.Env) > maxEnv || bytes > maxEnvBytes:
		return fault.New(fault.Invalid, "the image would set %d variables of %d bytes, more than %d of %d", len(c.Env), bytes, maxEnv, maxEnvBytes)
	case len(c.Labels) > maxLabels || words > maxWords || len(c.Ports) > maxWords || text > maxTextBytes:
		return fault.New(fault.Invalid, "the image's config would have %d labels, %d words of a command and %d ports of %d bytes, more than %d, %d and %d of %d",
			len(c.Labels), words, len(c.Ports), text, maxLabels, maxWords, maxWords, maxTextBytes)
	}
	return nil
}
