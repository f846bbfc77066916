// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

// published is what owners of services say that their hosts are. None of it has been tried: these
// lists were read, not used.
type published struct {
	domains []string
	source  string // where it is published, and when that was read
}

// owners are the presets of services.
func owners() map[string]published {
	return map[string]published{
		// Packages and images of containers are on other hosts, which it leaves out.
		"github": {
			domains: []string{"github.com", "*.github.com", "*.githubusercontent.com"},
			source:  "docs.github.com, \"Communicating with self-hosted runners\", read in November 2026; not tried",
		},
		"huggingface": {
			domains: []string{"huggingface.co", "*.huggingface.co", "hf.co", "*.hf.co"},
			source:  "huggingface.co/docs/hub, \"Downloading behind a proxy or firewall\", of July 2026; not tried",
		},
	}
}
