// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"strings"

	"sandpit.dev/sandbox"
)

// isHost reports whether a text is a host, with or without a port.
func isHost(s string) bool {
	name, _, _ := strings.Cut(s, ":")
	_, ok := sandbox.NormalName(name)
	return ok
}

// Variables returns what pip and npm are set to fetch from on m, as the variables by which they take
// it on another machine. Files of m are left out. An address may have a password in it.
func (m Machine) Variables() map[string]string {
	homes := m.Homes
	if len(homes) == 0 {
		homes = []string{""}
	}
	out := make(map[string]string)
	for _, home := range homes {
		for key, value := range pipSays(m, home) {
			var there []string
			for _, address := range strings.Fields(value) {
				if _, ok := host(address); ok || key == trustedHost && isHost(address) {
					there = append(there, address)
				}
			}
			if len(there) > 0 {
				out[pipVariables[key]] = strings.Join(there, " ")
			}
		}
		registry, _ := npmSays(m, home)
		if _, ok := host(registry); ok {
			out["npm_config_registry"] = registry
		}
	}
	return out
}
